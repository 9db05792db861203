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

// Error is an error of a Git operation on a remote repository.
type Error struct {
	// Op is the operation, such as "cloning".
	Op string
	// URL is the URL of the repository, without credentials.
	URL string
	// Problem is the cause.
	Problem string
	// Hint is the remedy, "" if unknown.
	Hint string

	cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Op, e.URL, e.Problem) }

// Unwrap returns the error of the transport.
func (e *Error) Unwrap() error { return e.cause }

// AccessDenied reports whether the server rejected the credentials, or denied
// them access to the repository.
func AccessDenied(err error) bool {
	var known *Error
	return errors.As(err, &known) && (errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) ||
		errors.Is(err, transport.ErrRepositoryNotFound) || strings.Contains(known.cause.Error(), "unable to authenticate"))
}

// explain returns an Error for an error of the transport.
func (r Remote) explain(ctx context.Context, op string, err error) error {
	e := &Error{Op: op, URL: redact.URL(r.URL), cause: err}
	e.Problem, e.Hint = describe(ctx, hostOf(r.URL), err)
	e.Problem = redact.Text(e.Problem)
	return e
}

func describe(ctx context.Context, host string, err error) (problem, hint string) {
	var dial *net.OpError
	var lookup *net.DNSError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var rejected *rejectedError
	var lost *lostPushError
	var unconfirmed *unconfirmedError
	text := err.Error()
	switch {
	case ctx.Err() != nil && errors.As(err, &unconfirmed):
		return fmt.Sprintf("no response from %s: %s: the push may have succeeded", host, context.Cause(ctx)), "run the command again; it resumes"
	case errors.As(err, &lost):
		return text, "run the command again; it resumes"
	case ctx.Err() != nil:
		return fmt.Sprintf("no response from %s: %s", host, context.Cause(ctx)), "check that the host is reachable, or increase --timeout"
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return "the server rejected the credentials (401)", "check the user name and the password or token: they may be wrong or expired"
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return "permission denied (403)", "grant the user or token write access to the repository"
	case strings.Contains(text, "unable to authenticate"):
		return "the server rejected the SSH key", "add its public key to the repository with write access, or set another one with --private-key-file"
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return "repository not found, or no permission to read it", "check the path in --url; create an empty repository first if it does not exist"
	case errors.As(err, &lookup):
		return fmt.Sprintf("no DNS record for host %q", lookup.Name), "check the host name in --url"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "cannot reach " + host + ": " + dial.Err.Error(), "check the host and port in --url, and that the server is running"
	case errors.As(err, &unknown):
		return "the server's certificate is signed by an unknown authority", "set --ca-file to the CA certificate"
	case errors.As(err, &wrongName):
		return wrongName.Error(), "use a host name of the server's certificate in --url"
	case errors.As(err, &rejected):
		return "the server rejected the push: " + text, "allow this user to push to the branch, or set another --branch"
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
