// Package clierr defines the errors and exit codes of commands.
package clierr

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/suggest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

// The exit codes of flux; docs/exit-codes.md lists them by command.
const (
	ExitSuccess = 0
	ExitFailed  = 1
	// ExitUndetermined is the exit code of an error in a command whose exit code 1
	// is a result, such as differences found.
	ExitUndetermined = 2
	ExitInterrupted  = 130
)

// ErrReported is returned by a command that has already reported its errors.
var ErrReported = errors.New("already reported")

// ErrStopped is returned by a command that runs until it is interrupted, when
// the user interrupts it.
var ErrStopped = errors.New("stopped")

// UntilInterrupted returns ErrStopped if the user has interrupted a command that
// runs until then, else err.
func UntilInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return ErrStopped
	}
	return err
}

// ConfigError is returned for a kubeconfig that cannot be used.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return "reading the kubeconfig: " + e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// ExitCodeError is the exit code of a plugin, which has reported its errors
// itself.
type ExitCodeError struct{ Code int }

func (e *ExitCodeError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// TimeoutError is the cause of a context that --timeout has ended.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("timed out after %s", e.After) }

// Is reports whether target is context.DeadlineExceeded, so that callers handle
// both alike.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Unreported returns the parts of a joined error that are not reported yet.
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

// Explain returns the message of an error and its remedy, "" for none.
func Explain(err error, cmd *cobra.Command) (message, remedy string) {
	message = err.Error()
	var withHint *hint.Error
	var config *ConfigError
	var dial *net.OpError
	switch {
	case errors.As(err, &withHint):
		return message, withHint.Hint
	case errors.Is(err, ui.ErrNoTerminal):
		return message, "skip the prompt with --silent"
	case errors.As(err, &config):
		return message, "set --kubeconfig or KUBECONFIG, or select another context with --context"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "cannot reach " + hostOf(err) + ": " + dial.Err.Error(), "check that the cluster runs and that the kubeconfig's server address is right"
	case expired(err):
		return message, "renew the certificate of the server, or correct the clock of this machine"
	case clientExpired(err):
		return message, "the client certificate has expired: renew the one of the kubeconfig"
	case apierrors.IsUnauthorized(err):
		return message, "the API server rejected the credentials: check the user of the kubeconfig context"
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

// hostOf names the API server of a failed request.
func hostOf(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		if u, parseErr := url.Parse(request.URL); parseErr == nil {
			return "the Kubernetes API at " + u.Scheme + "://" + u.Host
		}
	}
	return "the Kubernetes API"
}

// expired reports whether the certificate of a server has expired, or is not valid yet.
func expired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// clientExpired reports whether a server has rejected the client certificate because it has expired.
// The TLS library has no type for the alert.
func clientExpired(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error" && remote.Err.Error() == "tls: expired certificate"
}

// Unreachable reports whether every other request would fail with the same
// error: the API server cannot be reached or rejects the credentials.
func Unreachable(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) || expired(err) || apierrors.IsUnauthorized(err)
}
