package remote

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fluxkit/flux/internal/secrets/redact"
)

// Error is an error of a Git operation on a remote repository.
type Error struct {
	// Op is the operation, such as "cloning".
	Op string
	// URL is the URL of the repository, without credentials.
	URL string
	// Problem is the cause.
	Problem string
	// Hint is the remedy.
	Hint string
	// Transient is set for a temporary fault of the server or the network.
	Transient bool

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
		errors.Is(err, transport.ErrRepositoryNotFound) || known.cause != nil && strings.Contains(known.cause.Error(), "unable to authenticate"))
}

// explain returns an Error for an error of the transport, or nil if err is nil.
func (r Repository) explain(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, URL: redact.URL(r.URL), cause: err}
	host := hostOf(r.URL)
	if e.Problem, e.Hint = describeFault(ctx, host, err); e.Problem != "" {
		e.Transient = true
	} else {
		e.Problem, e.Hint = describe(host, err)
	}
	e.Problem = redact.Text(e.Problem)
	return e
}

const (
	// again is the remedy for faults during a push.
	again = "run the command again; it resumes"
	// retry is the remedy for faults while reading.
	retry = "run the command again; if it fails again, check the logs of the Git server and of the proxies in front of it"
)

// describeFault returns the problem and the remedy for a server or network fault, or "" for other errors.
func describeFault(ctx context.Context, host string, err error) (problem, hint string) {
	var lostPush *lostPushError
	var unconfirmed *unconfirmedError
	var lost *lostError
	var pack *packError
	var command *commandError
	switch {
	case ctx.Err() != nil && errors.As(err, &unconfirmed):
		return fmt.Sprintf("no response from %s: %s: the push may have succeeded", host, context.Cause(ctx)), again
	case errors.As(err, &lostPush):
		return err.Error(), again
	case ctx.Err() != nil:
		return fmt.Sprintf("no response from %s: %s", host, context.Cause(ctx)), "check that the host is reachable, or increase --timeout"
	case statusOf(err) >= http.StatusInternalServerError || statusOf(err) == http.StatusTooManyRequests:
		return "the server failed: " + summary(err), retry
	case errors.As(err, &command):
		return "the Git command failed on the server: " + command.Error(), retry
	case errors.As(err, &lost):
		return "the server closed the connection: " + summary(err), retry
	case errors.As(err, &pack) && !errors.As(err, new(*fs.PathError)):
		return describePack(pack.err), retry
	}
	return "", ""
}

// describePack describes why objects could not be read.
func describePack(err error) string {
	text := oneLine(err.Error())
	if _, reported, ok := strings.Cut(text, "unexpected error: "); ok { // go-git adds this prefix to error messages of the server
		return "the server failed: " + reported
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the server sent incomplete objects"
	}
	return "the server sent invalid objects: " + text
}

// summary formats an error in one line. HTTP errors are reduced to their status.
func summary(err error) string {
	if status := statusOf(err); status != 0 {
		return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	}
	return oneLine(err.Error())
}

func describe(host string, err error) (problem, hint string) {
	var dial *net.OpError
	var lookup *net.DNSError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var rejected *rejectedError
	var limit *limitError
	var invalid *packp.ErrUnexpectedData
	var unexpected *plumbing.UnexpectedError
	if statusOf(err) == 0 && errors.As(err, &unexpected) && !errors.As(err, &rejected) {
		err = unexpected.Err // go-git does not unwrap it
	}
	text := err.Error()
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return "the server rejected the credentials (401)", "check the user name and the password or token: they may be wrong or expired"
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return "permission denied (403)", "grant the user or token write access to the repository"
	case strings.Contains(text, "unable to authenticate"):
		return "the server rejected the SSH key", "add its public key to the repository with write access, or set another key with --private-key-file"
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return "repository not found, or no permission to read it", "check the path in --url; create an empty repository first if it does not exist"
	case errors.As(err, &lookup):
		return fmt.Sprintf("no DNS record for host %q", lookup.Name), "check the hostname in --url"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "cannot reach " + host + ": " + dial.Err.Error(), "check the host and port in --url, and that the server is running"
	case errors.As(err, &unknown):
		return "the server's certificate is signed by an unknown authority", "set --ca-file to the CA certificate"
	case errors.As(err, &wrongName):
		return wrongName.Error(), "set --url to a hostname in the server's certificate"
	case errors.As(err, &rejected):
		return "the server rejected the push: " + text, "allow this user to push to the branch, or set another --branch"
	case errors.As(err, &limit):
		return text, "use a repository with fewer or smaller " + limit.of
	case statusOf(err) != 0:
		return "unexpected response: " + summary(err), gitAddress
	case errors.As(err, &invalid) || errors.Is(err, pktline.ErrInvalidPktLen) || errors.Is(err, packp.ErrEmptyInput):
		return "the response is not from a Git server", gitAddress
	default:
		return oneLine(text), "check --url and the log of the Git server"
	}
}

// gitAddress is the remedy for a URL that is not the URL of a Git repository.
const gitAddress = "check --url: it must be the address that git clone uses"

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the Git server"
	}
	return u.Host
}
