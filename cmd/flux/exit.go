package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
)

// The exit codes of flux; docs/exit-codes.md lists them by command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUnanswered  = 2
	exitInterrupted = 130
)

// errReported is returned by a command that has reported a failure and gone on
// with the rest.
var errReported = errors.New("already reported")

// errStopped is returned by a command that goes on until it is interrupted,
// when it is: there is nothing to say about that.
var errStopped = errors.New("stopped")

// untilInterrupted makes the end of a command that goes on until it is
// interrupted: an error only where something else has ended it.
func untilInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return errStopped
	}
	return err
}

// hintedError is an error with a remedy.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

func hinted(hint string, format string, args ...any) error {
	return &hintedError{fmt.Errorf(format, args...), hint}
}

// configError says that the kubeconfig could not be used.
type configError struct{ err error }

func (e *configError) Error() string { return "reading the kubeconfig: " + e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

// exitCodeError carries the exit code of a program that has reported its failure itself.
type exitCodeError struct{ code int }

func (e *exitCodeError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// timeoutError is the cause of a context that ran into --timeout.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("timed out after %s", e.after) }

// Is makes it one of the errors that say that the time is over.
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// exit reports an error and turns it into the exit code.
func (a *app) exit(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitDone
	}
	var elsewhere *exitCodeError
	if errors.As(err, &elsewhere) {
		return elsewhere.code
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		if errors.Is(err, errStopped) {
			a.ui.Stopped()
		} else {
			a.ui.Failure("interrupted")
		}
		return exitInterrupted
	}
	failed := exitFailed
	if answersByCode(cmd) {
		failed = exitUnanswered
	}
	if errors.Is(err, errReported) {
		a.report(err)
		return failed
	}
	var lacking *usageError
	if errors.As(err, &lacking) {
		a.ui.Line("%s", shortUsage(lacking.cmd))
	}
	message, hint := explain(err, cmd)
	message = a.nameTimeout(message)
	if hint == "" {
		hint = a.hint(err)
	}
	a.ui.Failure("%s", redact.Text(message))
	if hint != "" {
		a.ui.Line("  %s", redact.Text(hint))
	}
	return failed
}

// unreported returns the parts of an error that were not reported yet: a
// failure that was reported may be joined with others.
func unreported(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case !errors.Is(err, errReported):
		return []error{err}
	case !ok:
		return nil
	}
	var rest []error
	for _, part := range joined.Unwrap() {
		rest = append(rest, unreported(part)...)
	}
	return rest
}

// answersByCode reports whether a command answers with exit code 1 that there
// are changes or problems, so that its own failures have another code.
func answersByCode(cmd *cobra.Command) bool {
	if cmd == nil {
		return false
	}
	words := strings.Fields(cmd.CommandPath())
	return len(words) > 1 && slices.Contains([]string{"diff", "why", "status"}, words[1])
}

// nameTimeout names --timeout in the message of a library, which knows only that
// a deadline has passed.
func (a *app) nameTimeout(message string) string {
	var over *timeoutError
	if operation := a.operation.Load(); operation == nil || !errors.As(context.Cause(*operation), &over) {
		return message
	}
	return strings.ReplaceAll(message, context.DeadlineExceeded.Error(), over.Error())
}

// explain returns the message of an error and its remedy, "" where none is known.
func explain(err error, cmd *cobra.Command) (message, hint string) {
	message = err.Error()
	var withHint *hintedError
	var config *configError
	var dial *net.OpError
	switch {
	case errors.As(err, &withHint):
		return message, withHint.hint
	case errors.Is(err, ui.ErrNoTerminal):
		return message, "answer beforehand with --silent"
	case errors.As(err, &config):
		return message, "name one with --kubeconfig or KUBECONFIG, or another context with --context"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "cannot reach " + hostOf(err) + ": " + dial.Err.Error(), "check that the cluster runs and that the kubeconfig's server address is right"
	case apierrors.IsUnauthorized(err):
		return message, "the cluster does not accept these credentials: check the kubeconfig's user"
	case errors.Is(err, context.DeadlineExceeded):
		return message, "increase --timeout"
	case strings.HasPrefix(message, "unknown flag") && cmd != nil:
		if near := nearestFlag(cmd, strings.TrimPrefix(message, "unknown flag: --")); near != "" {
			return message, fmt.Sprintf("did you mean %s?", near)
		}
		return message, fmt.Sprintf("run '%s --help' to see its flags", cmd.CommandPath())
	}
	return message, ""
}

func hostOf(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		if u, parseErr := url.Parse(request.URL); parseErr == nil {
			return "the Kubernetes API at " + u.Scheme + "://" + u.Host
		}
	}
	return "the Kubernetes API"
}
