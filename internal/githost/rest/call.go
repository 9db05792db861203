package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// Client sends requests to the JSON API of a host without a client library.
type Client struct {
	HTTP *http.Client
	// Address is the URL of the API.
	Address string
	// Token is masked in messages.
	Token string
	// Authorize sets the authorization headers of a request. If it is nil, Token is sent as a bearer token.
	Authorize func(*http.Request)
}

// NewClient returns a client for a path on a host.
func NewClient(client *http.Client, h githost.Hosted, path string) *Client {
	return &Client{HTTP: client, Address: strings.TrimSuffix(h.HTTPURL(path), "/"), Token: h.Token}
}

// Call sends a request and decodes the response into out. The parts of path are escaped; in and out may be nil. It
// returns a *StatusError if the host rejects the request.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, in, out any) (http.Header, error) {
	r, err := c.request(ctx, method, path, query, in)
	if err != nil {
		return nil, err
	}
	response, err := c.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body) // bounded by the transport
	if err != nil {
		return response.Header, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return response.Header, NewStatusError(response, body, c.Token)
	}
	if out == nil || len(body) == 0 {
		return response.Header, nil
	}
	return response.Header, json.Unmarshal(body, out)
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	address := c.Address + path
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
	r.Header.Set("Authorization", "Bearer "+c.Token)
	if c.Authorize != nil {
		c.Authorize(r)
	}
	return r, nil
}

// Pages calls read for each page, starting with first, until read returns no later page as next.
func Pages[T any](first int, read func(page int) (some []T, next int, err error)) ([]T, error) {
	var all []T
	for page := first; ; {
		some, next, err := read(page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if next <= page {
			return all, nil
		}
		page = next
	}
}

// StatusError is returned for a request that a host rejects.
type StatusError struct {
	Code int
	// Message is the host's message without credentials, "" for none.
	Message string
	Header  http.Header
	// Body is the response, from which packages of single hosts read further fields.
	Body []byte
}

// NewStatusError returns the error for a response. The token is masked in its message.
func NewStatusError(response *http.Response, body []byte, token string) *StatusError {
	return &StatusError{response.StatusCode, redact.Text(message(body), token), response.Header, body}
}

func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%d %s", e.Code, http.StatusText(e.Code))
	}
	return e.Message
}

// Status returns the HTTP status with which a host rejected a request, 0 for other errors.
func Status(err error) int {
	if rejected := (*StatusError)(nil); errors.As(err, &rejected) {
		return rejected.Code
	}
	return 0
}

// Message returns the host's message of a [StatusError] in lower case.
func Message(err error) string {
	if rejected := (*StatusError)(nil); errors.As(err, &rejected) {
		return strings.ToLower(rejected.Message)
	}
	return ""
}

// Missing reports whether a host rejected a request because an object does not exist or the token may not read it.
func Missing(err error) bool { return Status(err) == http.StatusNotFound }

// Denied reports whether a host rejected a request because of missing permissions.
func Denied(err error) bool { return Status(err) == http.StatusForbidden }

// Exists reports whether a host rejected the creation of an object because the object already exists. GitHub
// responds with 422, and most versions of GitLab with 400.
func Exists(err error) bool {
	switch Status(err) {
	case http.StatusConflict:
		return true
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return strings.Contains(Message(err), "already exists") || strings.Contains(Message(err), "has already been taken")
	}
	return false
}

// message returns the message in the response body of any host as one line. It returns "" if there is none, for
// example in the error page of a proxy.
func message(body []byte) string {
	var rejected struct {
		Message     any    `json:"message"`
		Description string `json:"error_description"`
		Error       any    `json:"error"`
		Errors      any    `json:"errors"`
	}
	if json.Unmarshal(body, &rejected) != nil {
		return ""
	}
	first := ""
	for _, part := range []any{rejected.Message, rejected.Description, rejected.Error} {
		if first = text(part); first != "" {
			break
		}
	}
	for _, part := range list(rejected.Errors) {
		if one, ok := part.(map[string]any); ok { // GitHub and Bitbucket Server
			part = one["message"]
		}
		if more := text(part); more != "" && more != first {
			first = strings.TrimPrefix(first+": "+more, ": ")
		}
	}
	return strings.Join(strings.Fields(first), " ")
}

func list(value any) []any {
	all, _ := value.([]any)
	return all
}

// text returns a message, which may be a string, a list, an object with a message, or fields with lists.
func text(message any) string {
	var parts []string
	switch m := message.(type) {
	case string:
		return m
	case []any:
		for _, part := range m {
			parts = append(parts, text(part))
		}
	case map[string]any:
		if only, ok := m["message"].(string); ok { // Bitbucket Cloud
			return only
		}
		for _, field := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, field+" "+text(m[field]))
		}
	}
	return strings.Join(parts, ", ")
}
