package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// maxRedirects is the maximum number of redirects per request.
const maxRedirects = 10

// RedirectError is returned for a redirect that is not followed.
type RedirectError struct {
	// From and To are the servers in the form scheme://host. To includes the path if Method is set.
	From, To string
	// Method is the request method that the redirect would change, "" for a redirect to another server.
	Method string
}

func (e *RedirectError) Error() string {
	if e.Method != "" {
		return fmt.Sprintf("the host redirects a %s request to %s", e.Method, e.To)
	}
	return "the host redirects to another address, " + e.To
}

var errRedirects = fmt.Errorf("more than %d redirects", maxRedirects)

// SameServer follows redirects only on the same server, because another server would receive the credentials. It does
// not follow redirects that turn a write request into a GET request, which would change nothing.
func SameServer(next *http.Request, via []*http.Request) error {
	first := via[0]
	from, to := origin(first.URL), origin(next.URL)
	switch {
	case from != to:
		return &RedirectError{From: from, To: to}
	case next.Method != first.Method:
		return &RedirectError{From: from, To: to + next.URL.Path, Method: first.Method}
	case len(via) >= maxRedirects:
		return errRedirects
	}
	return nil
}

// OtherServers follows redirects to all servers. A server with a different host, port or scheme receives neither the
// credentials nor the original URL (Referer), which may contain credentials. net/http alone compares only host names
// and would include subdomains.
func OtherServers(next *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errRedirects
	}
	if origin(next.URL) != origin(via[0].URL) {
		for _, name := range []string{"Authorization", "Cookie", "Private-Token", "X-Amz-Security-Token", "Referer"} {
			next.Header.Del(name)
		}
	}
	return nil
}

// Encrypted is like OtherServers, but only for addresses that CheckEncrypted accepts, so that redirects never turn
// off encryption.
func Encrypted(next *http.Request, via []*http.Request) error {
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("redirect to %s is not encrypted", Bare(next.URL))
	}
	if err := OtherServers(next, via); err != nil {
		return err
	}
	return CheckEncrypted(next.URL)
}

// NoRedirects returns redirects as responses.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// CheckEncrypted returns an error for an unencrypted address, because an attacker on the network could
// replace the response. Loopback addresses are allowed.
func CheckEncrypted(u *url.URL) error {
	if u.Host == "" {
		return fmt.Errorf("%q has no host", Bare(u))
	}
	switch u.Scheme {
	case "https":
		return nil
	case "http":
		ip := net.ParseIP(u.Hostname())
		if u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return nil
		}
		return fmt.Errorf("%s is not encrypted: use https", Bare(u))
	}
	return fmt.Errorf("%s: unsupported scheme %q: use https", Bare(u), u.Scheme)
}

// Bare returns an address without credentials, query and fragment, which may contain signatures.
func Bare(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return shown.String()
}

// WithoutURL removes the request URL from an error of net/http, because the query of a redirect URL may contain
// a signature.
func WithoutURL(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
