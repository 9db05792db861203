// Package download reads files from HTTPS servers with a limited number of
// attempts. It does not follow redirects to unencrypted addresses.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

const (
	// retries is the maximum number of retries of a request that fails temporarily.
	retries = 2
	// firstPause is the time before the first retry. It doubles with each further retry. maxPause is the longest pause
	// that a server can request.
	firstPause, maxPause = 500 * time.Millisecond, 30 * time.Second
	// headerTime is the maximum time until the response headers.
	headerTime = 30 * time.Second
)

// Client sends requests.
type Client struct{ http http.Client }

// File is a file that is being downloaded.
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
	client, err := For(web.Server{}, agent)
	if err != nil {
		return &Client{} // only certificates could be invalid
	}
	return client
}

// For returns a client for a server with custom certificates.
func For(server web.Server, agent string) (*Client, error) {
	server.ResponseTimeout = headerTime
	client, err := web.Client{Server: server, UserAgent: agent, Redirects: web.Encrypted, Retry: web.Retry{Plan: plan}}.HTTP()
	if err != nil {
		return nil, err
	}
	return &Client{*client}, nil
}

// plan retries temporary failures.
func plan(*http.Request) web.Decide {
	n := 0
	return func(response *http.Response, err error) web.Step {
		temporary := err != nil && web.Lost(err) ||
			err == nil && (response.StatusCode == http.StatusTooManyRequests || web.Unavailable(response.StatusCode))
		pause := firstPause << n
		if err == nil {
			if requested, ok := web.RetryAfter(response.Header); ok {
				pause = max(pause, requested)
			}
		}
		n++
		return web.Step{Again: temporary && n <= retries && pause <= maxPause, Pause: pause}
	}
}

// Get returns the response body for a URL.
func (c *Client) Get(ctx context.Context, u *url.URL) (*File, error) {
	if err := web.CheckEncrypted(u); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, failed(ctx, u, err)
	}
	if response.StatusCode == http.StatusOK {
		return &File{response.Body, response.ContentLength}, nil
	}
	_ = response.Body.Close() // the body of an error response is not used
	return nil, &StatusError{web.Bare(u), response.StatusCode}
}

// failed returns the error for a request that received no response.
func failed(ctx context.Context, u *url.URL, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("%s: %w", web.Bare(u), web.WithoutURL(err))
}

// Redirect returns the address to which a server redirects, without sending a request to it.
func (c *Client) Redirect(ctx context.Context, u *url.URL) (*url.URL, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return nil, err
	}
	client := c.http
	client.CheckRedirect = web.NoRedirects
	response, err := client.Do(request)
	if err != nil {
		return nil, failed(ctx, u, err)
	}
	_ = response.Body.Close() // a response to HEAD has no body
	target, err := response.Location()
	if err != nil {
		return nil, &StatusError{web.Bare(u), response.StatusCode}
	}
	return target, nil
}

// Read returns the content of a file of at most limit bytes.
func (c *Client) Read(ctx context.Context, address string, limit int64) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	file, err := c.Get(ctx, u)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := budget.ReadAll(file, "", "the file", limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", web.Bare(u), err)
	}
	return data, nil
}

// Copy copies the file, and returns its size and its SHA-256 checksum in hexadecimal digits. It fails after limit
// bytes. progress is called with the number of copied bytes and the total size, if known; it may be nil.
func (f *File) Copy(to io.Writer, limit int64, progress func(done, total int64)) (size int64, checksum string, err error) {
	sum := sha256.New()
	from := budget.Reader(f, limit, budget.TooLarge("", "the file", limit))
	size, err = io.Copy(io.MultiWriter(to, sum), budget.Counted(from, f.Size, progress))
	return size, hex.EncodeToString(sum.Sum(nil)), err
}

// Checksum returns the checksum of a file from the checksum list of a release, whose lines have the form "CHECKSUM
// FILE".
func Checksum(lines []byte, file string) (string, bool) {
	for line := range strings.Lines(string(lines)) {
		if fields := strings.Fields(line); len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
			return strings.ToLower(fields[0]), true
		}
	}
	return "", false
}
