package bootstrap

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
)

// Check is the result of one preflight check.
type Check struct {
	// Name is the subject of the check, as in "the cluster's version".
	Name string
	// Err is the reason why bootstrap would fail, nil if the check passed.
	Err error
}

// PreflightError is returned when several preflight checks fail.
type PreflightError struct {
	// Errs contains at least two errors, each with its remedy if there is one.
	Errs []error
}

func (e *PreflightError) Error() string {
	texts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the failures.
func (e *PreflightError) Unwrap() []error { return e.Errs }

type check struct {
	name string
	do   func(context.Context) error
}

// checks holds the results of completed checks.
type checks []Check

// run runs the checks of a stage concurrently. A check that fails does not
// cancel the others, so that one run reports every problem.
func (c *checks) run(ctx context.Context, stage []check) error {
	errs := make([]error, len(stage))
	var all sync.WaitGroup
	for i, one := range stage {
		all.Go(func() { errs[i] = withHint(one.do(ctx)) })
	}
	all.Wait()
	var failed []error
	for i, one := range stage {
		*c = append(*c, Check{one.name, errs[i]})
		if errs[i] != nil && !reported(failed, errs[i]) {
			failed = append(failed, errs[i])
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(failed) == 1:
		return failed[0]
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), failed[0])
	}
	return &PreflightError{failed}
}

// reported reports whether errs contains an error with the same message or about the same
// unreachable server.
func reported(errs []error, err error) bool {
	return slices.ContainsFunc(errs, func(e error) bool {
		var one, other *net.OpError
		return e.Error() == err.Error() ||
			errors.As(e, &one) && errors.As(err, &other) && one.Op == other.Op && one.Addr != nil && other.Addr != nil && one.Addr.String() == other.Addr.String()
	})
}
