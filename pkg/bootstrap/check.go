package bootstrap

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
)

// Check is something that preflight has looked at.
type Check struct {
	// Name is what was looked at, as in "the cluster".
	Name string
	// Err is what keeps bootstrap from working, nil where nothing does.
	Err error
}

// PreflightError says what keeps bootstrap from working, all that is known at once.
type PreflightError struct {
	// Errs has at least two entries, each with its way out where there is one.
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

// checks are what has been looked at so far.
type checks []Check

// run looks at several things at the same time. One that fails does not stop
// the others: who has two things to mend wants to hear of both.
func (c *checks) run(ctx context.Context, stage []check) error {
	errs := make([]error, len(stage))
	var all sync.WaitGroup
	for i, one := range stage {
		all.Go(func() { errs[i] = explain(one.do(ctx)) })
	}
	all.Wait()
	var failed []error
	for i, one := range stage {
		*c = append(*c, Check{one.name, errs[i]})
		if errs[i] != nil && !said(failed, errs[i]) {
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

// said tells whether an error is among others: the same words, or the same
// server that cannot be reached.
func said(errs []error, err error) bool {
	return slices.ContainsFunc(errs, func(e error) bool {
		var one, other *net.OpError
		return e.Error() == err.Error() ||
			errors.As(e, &one) && errors.As(err, &other) && one.Op == other.Op && one.Addr != nil && other.Addr != nil && one.Addr.String() == other.Addr.String()
	})
}
