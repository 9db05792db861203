// Package clierr has the errors of commands: with a remedy, with an exit code,
// or reported already.
package clierr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/cli/suggest"
	"github.com/fluxkit/flux/internal/ui"
)

// The exit codes of flux; docs/exit-codes.md lists them by command.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUnanswered  = 2
	ExitInterrupted = 130
)

// ErrReported is returned by a command that has reported a failure and gone on
// with the rest.
var ErrReported = errors.New("already reported")

// ErrStopped is returned by a command that goes on until it is interrupted,
// when it is: there is nothing to say about that.
var ErrStopped = errors.New("stopped")

// UntilInterrupted makes the end of a command that goes on until it is
// interrupted: an error only where something else has ended it.
func UntilInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return ErrStopped
	}
	return err
}

// HintedError is an error with a remedy.
type HintedError struct {
	Err  error
	Hint string
}

func (e *HintedError) Error() string { return e.Err.Error() }
func (e *HintedError) Unwrap() error { return e.Err }

// WithHint returns an error with a remedy.
func WithHint(hint string, format string, args ...any) error {
	return &HintedError{fmt.Errorf(format, args...), hint}
}

// ConfigError says that the kubeconfig could not be used.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return "reading the kubeconfig: " + e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// ExitCodeError carries the exit code of a program that has reported its failure itself.
type ExitCodeError struct{ Code int }

func (e *ExitCodeError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// TimeoutError is the cause of a context that ran into --timeout.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("timed out after %s", e.After) }

// Is makes it one of the errors that say that the time is over.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Unreported returns the parts of an error that were not reported yet: a
// failure that was reported may be joined with others.
func Unreported(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case !errors.Is(err, ErrReported):
		return []error{err}
	case !ok:
		return nil
	}
	var rest []error
	for _, part := range joined.Unwrap() {
		rest = append(rest, Unreported(part)...)
	}
	return rest
}

// Explain returns the message of an error and its remedy, "" where none is known.
func Explain(err error, cmd *cobra.Command) (message, hint string) {
	message = err.Error()
	var withHint *HintedError
	var config *ConfigError
	var dial *net.OpError
	switch {
	case errors.As(err, &withHint):
		return message, withHint.Hint
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
		if near := suggest.Flag(cmd, strings.TrimPrefix(message, "unknown flag: --")); near != "" {
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

// Unreachable tells an error that every other request would meet as well.
func Unreachable(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) || apierrors.IsUnauthorized(err)
}
