package githost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v60/github"
	"github.com/xanzy/go-gitlab"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// restClient sends requests to the JSON API of a host without a client library.
type restClient struct {
	client *http.Client
	hosted Hosted
	// api is the name of the API, and base the path of its version.
	api, base string
	// prepare sets the headers of a request, and messages reads the body of a
	// response that rejects one.
	prepare  func(*http.Request)
	messages func(body []byte) []string
}

// call sends a request and decodes the response into out. The parts of path are
// escaped; in and out may be nil. The error is a *statusError if the host
// rejects the request.
func (c *restClient) call(ctx context.Context, method, path string, query url.Values, in, out any) (http.Header, error) {
	r, err := c.request(ctx, method, path, query, in)
	if err != nil {
		return nil, err
	}
	response, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body) // bounded by the transport
	if err != nil {
		return response.Header, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		text := strings.Join(strings.Fields(strings.Join(c.messages(body), "; ")), " ")
		return response.Header, &statusError{response.StatusCode, redact.Text(text, c.hosted.Token), response.Header}
	}
	if out == nil || len(body) == 0 {
		return response.Header, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return response.Header, c.noAPI(r.URL.Path)
	}
	return response.Header, nil
}

func (c *restClient) request(ctx context.Context, method, path string, query url.Values, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	address := strings.TrimSuffix(c.hosted.HTTPURL("/"), "/") + c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	c.prepare(r)
	return r, nil
}

// noAPI returns the error for a response that the API does not send.
func (c *restClient) noAPI(path string) error {
	return hint.Errorf("check "+c.hosted.origin()+": use the host of the "+c.api+" API, with the base path if it has one",
		"%s has no %s API at %s", c.hosted.Hostname, c.api, path)
}

// statusError is returned for a request that a host rejects.
type statusError struct {
	status int
	// message is the host's message without credentials, "" for none.
	message string
	header  http.Header
}

func (e *statusError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	}
	return e.message
}

// status returns the HTTP status of a request that a host rejected, 0 for other
// errors.
func status(err error) int {
	var rest *statusError
	var hub *github.ErrorResponse
	var lab *gitlab.ErrorResponse
	switch {
	case errors.As(err, &rest):
		return rest.status
	case errors.As(err, &hub) && hub.Response != nil:
		return hub.Response.StatusCode
	case errors.Is(err, gitlab.ErrNotFound):
		return http.StatusNotFound
	case errors.As(err, &lab) && lab.Response != nil:
		return lab.Response.StatusCode
	}
	return 0
}

// message returns the host's message of a [statusError].
func message(err error) string {
	var rejected *statusError
	if errors.As(err, &rejected) {
		return rejected.message
	}
	return ""
}

// unavailable returns the error for a host that fails, nil for other errors.
func (h Hosted) unavailable(doing string, err error) error {
	code := status(err)
	if code < http.StatusInternalServerError {
		return nil
	}
	remedy := "try again later"
	if h.Hostname == "github.com" {
		remedy += "; see https://www.githubstatus.com"
	}
	return hint.Errorf(remedy, "%s: %s responded with %d %s", doing, h.Hostname, code, http.StatusText(code))
}
