package kinds

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
)

// Reporter reads and prints the results of a command for one or several objects.
type Reporter[T any] struct {
	// Format is the value of --output, and Listed is set if JSON and YAML are a list.
	Format string
	Listed bool
	Read   func(i int) (T, error)
	// Print prints a result as text, and Encoded returns it for JSON and YAML.
	Print   func(i int, result T) error
	Encoded func(i int, result T) any
	// Exit returns the error that sets the exit code.
	Exit func(result T) error
}

// Run reads n results, app.Concurrency at a time, and prints the successful ones. It returns the error of a
// single result. failed is an earlier error. Nothing is printed if user, the context without --timeout, has
// ended, because a partial report could contain another root cause.
func (r Reporter[T]) Run(user context.Context, a *app.App, n int, failed error) error {
	results, failures := make([]T, n), make([]error, n)
	var g errgroup.Group
	g.SetLimit(app.Concurrency)
	for i := range n {
		g.Go(func() error {
			results[i], failures[i] = r.Read(i)
			return nil
		})
	}
	_ = g.Wait() // the goroutines return nil
	if interrupted := context.Cause(user); interrupted != nil {
		return interrupted
	}
	list := []any{}
	reported := map[string]bool{} // an unknown kind, for example, fails for each name
	for i, result := range results {
		switch err := failures[i]; {
		case err != nil && (!r.Listed || clierr.Unreachable(err)):
			return err
		case err != nil:
			if !reported[err.Error()] {
				a.Report(err)
			}
			reported[err.Error()] = true
			failed = clierr.Worse(failed, &clierr.ExitCodeError{Code: clierr.ExitUndetermined})
			continue
		}
		if r.Format != "" {
			list = append(list, r.Encoded(i, result))
		} else if err := r.page(a, i, result); err != nil {
			return err
		}
		failed = clierr.Worse(failed, r.Exit(result))
	}
	var err error
	switch {
	case r.Format != "" && r.Listed:
		err = a.Encode(r.Format, list)
	case r.Format != "":
		err = a.Encode(r.Format, list[0])
	}
	return errors.Join(err, failed)
}

// page prints a result, with an empty line before all but the first.
func (r Reporter[T]) page(a *app.App, i int, result T) error {
	if i > 0 {
		if err := a.Printf("\n"); err != nil {
			return err
		}
	}
	return r.Print(i, result)
}
