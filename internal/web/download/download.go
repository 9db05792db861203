// Package download reads files from HTTPS servers: with bounded attempts, and
// without redirects to addresses that are not encrypted.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

const (
	// attempts is the maximum number of attempts of a request that fails temporarily.
	attempts = 3
	// firstPause is the time before the second attempt. It doubles for each further one.
	firstPause = 500 * time.Millisecond
	// headerTime is the maximum time until the response headers.
	headerTime   = 30 * time.Second
	redirectsMax = 10
)

// Client sends requests.
type Client struct {
	HTTP  *http.Client
	agent string
}

// File is an open file.
type File struct {
	io.ReadCloser
	// Size is -1 if the server does not send it.
	Size int64
}

// StatusError is returned for an HTTP status other than 200.
type StatusError struct {
	URL  string
	Code int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: unexpected status %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// Is reports whether the status matches fs.ErrNotExist.
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Code == http.StatusNotFound
}

// New returns a client with a User-Agent.
func New(agent string) *Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: headerTime, ForceAttemptHTTP2: true}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = usual.Clone()
		transport.ResponseHeaderTimeout = headerTime
	}
	return &Client{&http.Client{Transport: transport, CheckRedirect: checkRedirect}, agent}
}

// Check returns an error for an unencrypted address, whose response an attacker on the network
// could replace: the checksums come from the catalog and would match. Loopback addresses are
// allowed.
func Check(u *url.URL) error {
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

func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > redirectsMax {
		return fmt.Errorf("more than %d redirects", redirectsMax)
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("redirect to %s is not encrypted", Bare(next.URL))
	}
	return Check(next.URL)
}

// Get returns the body at a URL. It retries temporary failures.
func (c *Client) Get(ctx context.Context, u *url.URL) (*File, error) {
	if err := Check(u); err != nil {
		return nil, err
	}
	pause := firstPause
	for left := attempts - 1; ; left-- {
		body, err := c.once(ctx, u)
		if err == nil || left == 0 || ctx.Err() != nil || !passing(err) {
			return body, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
			pause *= 2
		}
	}
}

func (c *Client) once(ctx context.Context, u *url.URL) (*File, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", c.agent)
	response, err := c.HTTP.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		// The URL in the error may be that of a redirect, with a signature in its query.
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("%s: %w", Bare(u), err)
	}
	if response.StatusCode == http.StatusOK {
		return &File{response.Body, response.ContentLength}, nil
	}
	_ = response.Body.Close() // the body of an error is not used
	return nil, &StatusError{Bare(u), response.StatusCode}
}

// Read returns the content of a file of at most most bytes.
func (c *Client) Read(ctx context.Context, address string, most int64) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	file, err := c.Get(ctx, u)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := budget.ReadAll(file, "", "the file", most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Bare(u), err)
	}
	return data, nil
}

// Copy copies the file, and returns its size and its SHA-256 checksum in hexadecimal digits. It fails
// after most bytes. progress is called with what was copied and the total size, if known; it may be
// nil.
func (f *File) Copy(to io.Writer, most int64, progress func(done, total int64)) (size int64, checksum string, err error) {
	sum := sha256.New()
	from := budget.Reader(f, most, budget.TooLarge("", "the file", most))
	size, err = io.Copy(io.MultiWriter(to, sum), budget.Counted(from, f.Size, progress))
	return size, hex.EncodeToString(sum.Sum(nil)), err
}

// Checksum returns the checksum of a file from the lines "CHECKSUM  FILE" of a release.
func Checksum(lines []byte, file string) (string, bool) {
	for line := range strings.Lines(string(lines)) {
		if fields := strings.Fields(line); len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
			return strings.ToLower(fields[0]), true
		}
	}
	return "", false
}

// Bare returns an address without credentials, query and fragment, which may contain signatures.
func Bare(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	return shown.String()
}

// passing reports whether the failure of a request is temporary.
func passing(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Code {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
