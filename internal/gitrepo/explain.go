package gitrepo

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fluxkit/flux/internal/redact"
)

// Error is a failure of talking to a Git server, in words.
type Error struct {
	// Doing is what was being done, such as "cloning".
	Doing string
	// URL is the repository, without credentials.
	URL string
	// Problem is what went wrong.
	Problem string
	// Hint is the way out.
	Hint string

	cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Doing, e.URL, e.Problem) }

// Unwrap returns what the transport reported.
func (e *Error) Unwrap() error { return e.cause }

// Refused tells whether a server was reached and does not accept the
// credentials, or does not let them see the repository.
func Refused(err error) bool {
	var known *Error
	return errors.As(err, &known) && (errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) ||
		errors.Is(err, transport.ErrRepositoryNotFound) || strings.Contains(known.cause.Error(), "unable to authenticate"))
}

// explain turns what the transport reports into words.
func (r Remote) explain(ctx context.Context, doing string, err error) error {
	e := &Error{Doing: doing, URL: redact.URL(r.URL), cause: err}
	e.Problem, e.Hint = words(ctx, hostOf(r.URL), err)
	e.Problem = redact.Text(e.Problem)
	return e
}

func words(ctx context.Context, host string, err error) (problem, hint string) {
	var dial *net.OpError
	var lookup *net.DNSError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var refused *refusal
	var lost *lostPushError
	var unconfirmed *unconfirmedError
	text := err.Error()
	switch {
	case ctx.Err() != nil && errors.As(err, &unconfirmed):
		return fmt.Sprintf("no answer from %s: %s: the push may have arrived", host, context.Cause(ctx)), "run the command again: it continues from what the branch has"
	case errors.As(err, &lost):
		return text, "run the command again: it continues from what the branch has"
	case ctx.Err() != nil:
		return fmt.Sprintf("no answer from %s: %s", host, context.Cause(ctx)), "check that the host can be reached, or give it more time with --timeout"
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return "the server does not accept these credentials (401)", "check the user name and the password or token: they may be wrong or expired"
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return "these credentials may not do that (403)", "give the user or token write access to the repository"
	case strings.Contains(text, "unable to authenticate"):
		return "the server does not accept the SSH key", "add its public key to the repository with write access, or name another one with --private-key-file"
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return "there is no such repository, or these credentials may not see it", "check the path in --url; an empty repository has to be made first"
	case errors.As(err, &lookup):
		return fmt.Sprintf("host %q is not known", lookup.Name), "check the host name in --url"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "cannot reach " + host + ": " + dial.Err.Error(), "check the host and port in --url and that the server runs"
	case errors.As(err, &unknown):
		return "the server's certificate is signed by an unknown authority", "name the authority's certificate with --ca-file"
	case errors.As(err, &wrongName):
		return wrongName.Error(), "use the name that stands in the server's certificate"
	case errors.As(err, &refused):
		return "the server refuses the push: " + text, "allow this user to push to the branch, or use another one with --branch"
	default:
		return text, ""
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the Git server"
	}
	return u.Host
}
