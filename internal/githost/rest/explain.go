package rest

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/web"
)

// API describes the API of a host and the token, for the error hints of failed requests.
type API struct {
	Hosted githost.Hosted
	// Name is the name of the product.
	Name string
	// Account is the account of the token, "" if unknown, and Expires the expiration time of the token, zero if
	// unknown.
	Account string
	Expires time.Time
	// Variable is the environment variable with the token, and Tokens the path of the web page for creating tokens.
	Variable, Tokens string
	// Denied is the hint for missing permissions, and Rejected the hint for other rejected requests.
	Denied, Rejected string
	// Cause returns the error for responses specific to this host, nil for others. It may be nil.
	Cause func(doing string, e *StatusError) error
}

// Who returns the account name for messages.
func (a *API) Who() string { return cmp.Or(a.Account, "the token's account") }

// TokenPage returns the address of the web page for creating tokens.
func (a *API) TokenPage() string { return a.Hosted.HTTPURL(a.Tokens) }

// Explain returns the error of a failed request with a hint, nil for nil. It is the only place that handles the
// failures common to all hosts.
func (a *API) Explain(ctx context.Context, doing string, err error) error {
	var known *hint.Error
	var denied *githost.DeniedError
	var rejected *StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.As(err, &denied):
		return err
	case errors.As(err, &rejected):
		return a.rejection(doing, rejected)
	}
	if explained := a.connection(ctx, doing, err); explained != nil {
		return explained
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// rejection explains a request that the host rejects.
func (a *API) rejection(doing string, e *StatusError) error {
	host := a.Hosted.Hostname
	if e.Code >= http.StatusInternalServerError {
		remedy := "try again later"
		if host == "github.com" {
			remedy += "; see https://www.githubstatus.com"
		}
		return hint.Errorf(remedy, "%s: %s responded with %d %s", doing, host, e.Code, http.StatusText(e.Code))
	}
	if a.Cause != nil {
		if err := a.Cause(doing, e); err != nil {
			return err
		}
	}
	switch {
	case e.Code == http.StatusUnauthorized:
		remedy := "set " + a.Variable + " to a valid token: the current one may be wrong, expired or revoked"
		if a.Tokens != "" {
			remedy += "; create one at " + a.TokenPage()
		}
		return &githost.DeniedError{Err: hint.Errorf(remedy, "%s: %s rejected the token (401)", doing, host)}
	case e.Code == http.StatusForbidden, e.Code == http.StatusNotFound:
		return a.NoPermission(doing, e)
	case e.Message == "":
		return hint.Errorf(a.checkHost(), "%s: %s responded with %d %s", doing, host, e.Code, http.StatusText(e.Code))
	}
	return hint.Errorf(a.Rejected, "%s: %s rejected the request (%d)%s", doing, host, e.Code, a.detail(e))
}

// NoPermission returns the error of a request that the host rejects because of missing permissions.
func (a *API) NoPermission(doing string, e *StatusError) error {
	fact := "no permission"
	switch {
	case e.Code == http.StatusNotFound:
		fact = "not found, or no permission"
	case a.Account != "":
		fact = a.Account + " has no permission"
	}
	return &githost.DeniedError{Err: hint.Errorf(a.Denied, "%s: %s (%d)%s", doing, fact, e.Code, a.detail(e))}
}

// detail returns a colon and the host's message, "" for none.
func (a *API) detail(e *StatusError) string {
	if e.Message == "" {
		return ""
	}
	return ": " + redact.Text(e.Message, a.Hosted.Token)
}

// checkHost is the hint for a host that does not respond like the API.
func (a *API) checkHost() string {
	return fmt.Sprintf("check %s: use the hostname of a %s server, with its base path if it has one", a.Hosted.HostnameFlag(), a.Name)
}

// connection explains the error of a request without a usable response. It returns nil for other errors.
func (a *API) connection(ctx context.Context, doing string, err error) error {
	var limit *RateLimitError
	var excess *excessError
	var redirect *web.RedirectError
	var lookup *net.DNSError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var record tls.RecordHeaderError
	var request *url.Error
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	origin, host := a.Hosted.HostnameFlag(), a.Hosted.Hostname
	switch {
	case errors.As(err, &limit):
		return hint.Errorf("run the command again after that time; it resumes", "%s: %w", doing, limit)
	case ctx.Err() != nil:
		return hint.Errorf("check that the host is reachable, or increase --timeout", "%s: no response from %s: %w", doing, host, context.Cause(ctx))
	case errors.As(err, &excess):
		return hint.Errorf("check "+origin+": the server may not be a Git host", "%s: %s %w", doing, host, excess)
	case errors.As(err, &syntax), errors.As(err, &mismatch):
		return hint.Errorf(a.checkHost(), "%s: %s has no %s API", doing, host, a.Name)
	case errors.As(err, &redirect):
		return hint.Errorf("set "+origin+" to the new address, or check the names of the owner and the repository: they may have been renamed", "%s: %w", doing, redirect)
	case errors.As(err, &lookup):
		return hint.Errorf("check "+origin, "%s: no DNS record for host %q", doing, lookup.Name)
	case errors.As(err, &unknown):
		return hint.Errorf("set "+cmp.Or(a.Hosted.CAOrigin, "--ca-file")+" to the CA certificate", "%s: the certificate of %s is signed by an unknown authority", doing, host)
	case errors.As(err, &wrongName):
		return hint.Errorf("set "+origin+" to a hostname in the server's certificate", "%s: %w", doing, wrongName)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return hint.Errorf("check the port in "+origin, "%s: %s does not serve TLS", doing, host)
	case web.Unreachable(err) != nil:
		return hint.Errorf("check "+origin+", and that the host is reachable from this machine", "%s: cannot reach %s: %w", doing, host, web.Unreachable(err))
	case errors.As(err, &request) && request.Timeout():
		return hint.Errorf("check that the host is reachable, and try again", "%s: %s does not respond", doing, host)
	case errors.As(err, &request):
		return hint.Errorf("check "+origin+", and try again", "%s: %s", doing, redact.Text(request.Err.Error(), a.Hosted.Token))
	}
	return nil
}
