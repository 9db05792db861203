package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/web"
)

// Sender sends requests to webhooks.
type Sender struct {
	Client    *http.Client
	UserAgent string
	// Retries is the number of retries of a failed request.
	Retries int
	// Delay is the time before a retry.
	Delay time.Duration
	// Again is called with the error of a request and the number of remaining retries. It returns false to stop.
	Again func(why error, left int) bool
}

// StatusError is returned for a response with an error status.
type StatusError struct {
	Code int
	// Text is the first line of a plain-text response.
	Text string
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("the webhook responded with %d %s", e.Code, http.StatusText(e.Code))
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// temporary reports whether a retry may succeed.
func (e *StatusError) temporary() bool {
	return e.Code == http.StatusTooManyRequests || e.Code >= http.StatusInternalServerError && e.Code != http.StatusNotImplemented
}

// Send sends a request to a Receiver of the type and retries temporary failures.
// It returns the error of the last attempt.
func (s Sender) Send(ctx context.Context, address *url.URL, t Type, r Request) error {
	client := *s.Client
	client.CheckRedirect = web.NoRedirects // redirect targets must not receive the token or the signature
	header, err := t.header(r)
	if err != nil {
		return err
	}
	header.Set("User-Agent", s.UserAgent)
	for left := s.Retries; ; left-- {
		err := s.once(ctx, &client, address, header, r)
		var refused *StatusError
		if err == nil || ctx.Err() != nil || left <= 0 || errors.As(err, &refused) && !refused.temporary() {
			return err
		}
		if s.Again != nil && !s.Again(err, left) {
			return err
		}
		if web.Sleep(ctx, s.Delay) != nil {
			return err
		}
	}
}

// attemptTime is the timeout of an attempt. A server that does not respond in time may respond to a retry.
const attemptTime = 30 * time.Second

func (s Sender) once(ctx context.Context, client *http.Client, address *url.URL, header http.Header, r Request) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(r.Payload))
	if err != nil {
		return fmt.Errorf("preparing the request: %w", web.WithoutURL(err))
	}
	request.Header = header.Clone()
	response, err := client.Do(request)
	if err != nil {
		// The path of a webhook is a secret.
		return web.WithoutURL(err)
	}
	said, err := firstLine(response)
	if response.StatusCode < 300 {
		return err
	}
	return &StatusError{response.StatusCode, redact.Text(said, r.Token, r.Bearer)}
}

// maxText is the maximum length of the response text in an error.
const maxText = 300

// firstLine returns the first line of a plain-text response.
func firstLine(response *http.Response) (string, error) {
	text, err := budget.Head(response.Body, maxText)
	err = errors.Join(err, response.Body.Close())
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") && !strings.HasPrefix(kind, "application/json") {
		return "", err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line, err
}
