// Package clierr defines the errors and exit codes of commands.
package clierr

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/suggest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/transport"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

// The exit codes of flux; docs/exit-codes.md lists them by command.
const (
	ExitSuccess = 0
	ExitFailed  = 1
	// ExitUndetermined is the exit code for errors of commands that use exit code 1
	// for a result, such as differences.
	ExitUndetermined = 2
	ExitInterrupted  = 130
)

// ErrReported is returned by a command that has already reported its errors.
var ErrReported = errors.New("already reported")

// ErrStopped is returned when the user interrupts a command that runs until interrupted.
var ErrStopped = errors.New("stopped")

// UntilInterrupted returns ErrStopped if the user interrupted the command, else err.
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

// Worse returns the error that determines the exit code of a command on several objects: a failure takes
// precedence over an undetermined result.
func Worse(a, b error) error {
	var code *ExitCodeError
	if a == nil || errors.As(b, &code) && code.Code == ExitFailed {
		return cmp.Or(b, a)
	}
	return a
}

// TimeoutError is the cause of a context that exceeded --timeout.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("timed out after %s", brief(e.After)) }

// brief formats a duration without trailing zero units.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

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
	case inRequest(err) && explainServer(err) != "":
		return explainServer(err), serverRemedy(err)
	case errors.Is(err, ui.ErrNoTerminal):
		return message, "skip the prompt with --yes"
	case errors.As(err, &config):
		return message, "set --kubeconfig or KUBECONFIG, or select another context with --context"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "cannot reach " + hostOf(err) + ": " + dial.Err.Error(), "check that the cluster is running and that the server address in the kubeconfig is correct"
	case expired(err):
		return message, "renew the server certificate, or correct the clock of this machine"
	case clientExpired(err):
		return message, "renew the expired client certificate in the kubeconfig"
	case apierrors.IsUnauthorized(err):
		return message, "the API server rejected the credentials: check the user of the kubeconfig context"
	case errors.Is(err, context.DeadlineExceeded):
		return message, "increase --timeout"
	case strings.Contains(message, "serializer for text/html"): // client-go has no type for this error
		return "the Kubernetes API returned HTML instead of JSON", "check that the server address in the kubeconfig points to a Kubernetes API server"
	case strings.HasPrefix(message, unknownShorthand) && cmd != nil:
		return message, shorthandRemedy(cmd, strings.TrimPrefix(message, unknownShorthand))
	case strings.HasPrefix(message, "unknown flag") && cmd != nil:
		if near := suggest.Flag(cmd, strings.TrimPrefix(message, "unknown flag: --")); near != "" {
			return message, fmt.Sprintf("did you mean %s?", near)
		}
		return message, fmt.Sprintf("run '%s --help' to see its flags", cmd.CommandPath())
	}
	return message, ""
}

// unknownShorthand is the prefix of the pflag error for an unknown shorthand.
const unknownShorthand = "unknown shorthand flag: '"

// shorthandRemedy suggests the flag whose shorthand is the same letter in the other case.
func shorthandRemedy(cmd *cobra.Command, rest string) string {
	letter := rest[:min(len(rest), 1)]
	for _, other := range []string{strings.ToUpper(letter), strings.ToLower(letter)} {
		if f := cmd.Flags().ShorthandLookup(other); other != "" && f != nil {
			return fmt.Sprintf("did you mean -%s (--%s)?", other, f.Name)
		}
	}
	return fmt.Sprintf("run '%s --help' to see its flags", cmd.CommandPath())
}

// inRequest reports whether a request to the API server failed without a response.
func inRequest(err error) bool {
	failed := request(err)
	if failed == nil || errors.As(err, new(*transport.CredentialPluginError)) {
		return false
	}
	u, parseErr := url.Parse(failed.URL)
	return parseErr == nil && (strings.Contains(u.Path, "/api/") || strings.Contains(u.Path, "/apis/") || strings.HasSuffix(u.Path, "/version"))
}

// explainServer returns the message for a server that does not behave like an API server: it does not respond, or its
// TLS or HTTP responses are invalid. It returns "" for other errors.
func explainServer(err error) string {
	host, cause := hostOf(err), request(err).Err
	var over *TimeoutError
	switch {
	case errors.As(err, &over):
		return host + " did not respond: " + over.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return host + " did not respond in time"
	case withoutTLS(err):
		return host + " does not serve TLS"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "cannot verify the certificate of " + host + ": " + strings.TrimPrefix(cause.Error(), "tls: failed to verify certificate: ")
	case withoutHTTP(err):
		return host + " did not return an HTTP response"
	case strings.HasPrefix(cause.Error(), lost):
		return host + " " + strings.TrimPrefix(cause.Error(), lost)
	}
	return ""
}

func serverRemedy(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "check that the server address in the kubeconfig points to a Kubernetes API server, or increase --timeout"
	case expired(err):
		return "renew the server certificate, or correct the clock of this machine"
	case errors.As(err, new(x509.HostnameError)):
		return "use a server address that the certificate contains, or set tls-server-name in the kubeconfig"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "set certificate-authority-data in the kubeconfig to the server's CA certificate"
	}
	return "check that the server address in the kubeconfig points to a Kubernetes API server"
}

func request(err error) *url.Error {
	var request *url.Error
	errors.As(err, &request)
	return request
}

// lost is the prefix of the error for a connection that was lost repeatedly.
const lost = "the API server "

// withoutTLS reports whether the server of an https URL does not serve TLS.
func withoutTLS(err error) bool {
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(tls.RecordHeaderError))
}

// withoutHTTP reports whether the response is not HTTP. net/http has no type for the error.
func withoutHTTP(err error) bool { return strings.Contains(err.Error(), "malformed HTTP") }

// hostOf returns the API server of a failed request, for messages.
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
	return errors.As(err, &dial) || expired(err) || apierrors.IsUnauthorized(err) ||
		inRequest(err) && explainServer(err) != "" && !strings.HasPrefix(request(err).Err.Error(), lost)
}
