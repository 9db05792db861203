package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

// The limits of API server responses after decompression. MaxResponse applies to a response that is read as a whole,
// an object in a list, and a watch event; MaxList to all pages of a list; and maxError to an error response.
const (
	MaxResponse = 32 << 20
	MaxList     = 1 << 30
	maxError    = 1 << 20
	// maxValues limits the number of JSON values in a response that is decoded as a whole.
	maxValues = 2_000_000
)

// bounded returns a transport that limits the size of responses, which client-go reads without a limit.
func bounded(next http.RoundTripper) http.RoundTripper {
	return web.Wrap(next, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
		address := addressOf(r.URL)
		switch {
		case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices:
			response.Body = budget.Body(response.Body, maxError, budget.TooLarge(address, "the error response", maxError))
		case r.Context().Value(streamed{}) != nil: // the reader limits it
		case r.URL.Query().Has("watch"):
			response.Body = budget.Closing(events(response.Body, budget.TooLarge(address, "an event", MaxResponse)), response.Body)
		default:
			response.Body = budget.Body(response.Body, MaxResponse, budget.TooLarge(address, "the response", MaxResponse))
		}
		return response, nil
	})
}

// events limits the size of each event, which is a line of the response, because the response to a watch never ends.
func events(from io.Reader, exceeded error) io.Reader {
	line := 0
	return budget.Checked(from, func(read []byte, _ error) error {
		if end := bytes.LastIndexByte(read, '\n'); end >= 0 {
			line = -end - 1
		}
		if line += len(read); line > MaxResponse {
			return exceeded
		}
		return nil
	})
}

// addressOf returns the address of a request, without its query.
func addressOf(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// streamed is the context key of requests whose response is read piece by piece.
type streamed struct{}

// Open sends a request. The caller reads the response piece by piece and must limit it.
func Open(ctx context.Context, request *rest.Request) (io.ReadCloser, error) {
	body, err := request.Stream(context.WithValue(ctx, streamed{}, true))
	if err != nil {
		return nil, err
	}
	// HTTP/2 buffers 4 MiB, which can decompress to gigabytes.
	return budget.Closing(budget.Interruptible(ctx, body), body), nil
}

// Send sends a request and returns the response body. Unlike DoRaw, it returns errors with the message of the server.
func Send(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	err := result.Error()
	var exceeded *budget.ExceededError
	if errors.As(err, &exceeded) {
		return nil, exceeded // client-go adds advice to retry the request
	}
	if err != nil {
		return nil, err
	}
	body, err := result.Raw()
	if err == nil && budget.Nodes(body) > maxValues {
		return nil, budget.TooMany(addressOf(request.URL()), "the response", "JSON values", maxValues)
	}
	return body, errors.Join(err, budget.Memory(addressOf(request.URL())))
}
