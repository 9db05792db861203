package kube

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/budget"
)

// The limits of what the API server sends, after decompression: a response that is read as a whole,
// an object in a list or an event of a watch; an error response; and a list with all its pages.
const (
	maxAnswer = 32 << 20
	maxError  = 1 << 20
	maxList   = 1 << 30
	// maxValues limits the JSON values of a response that is decoded as a whole.
	maxValues = 2_000_000
)

// bounded is the transport that limits responses: client-go reads them without a limit.
type bounded struct{ next http.RoundTripper }

// WrappedRoundTripper returns the wrapped transport to client-go.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	address := addressOf(r.URL)
	switch {
	case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices:
		response.Body = budget.Body(response.Body, maxError, budget.TooLarge(address, "the error response", maxError))
	case r.Context().Value(streamed{}) != nil: // the reader limits it
	case r.URL.Query().Has("watch"):
		response.Body = &eventBody{ReadCloser: response.Body, exceeded: budget.TooLarge(address, "an event", maxAnswer)}
	default:
		response.Body = budget.Body(response.Body, maxAnswer, budget.TooLarge(address, "the response", maxAnswer))
	}
	return response, nil
}

// addressOf returns the address of a request, without its query.
func addressOf(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// streamed is the context key of requests whose response is read piece by piece.
type streamed struct{}

// openStream sends a request whose response the caller reads piece by piece, and limits.
func openStream(ctx context.Context, request *rest.Request) (io.ReadCloser, error) {
	body, err := request.Stream(context.WithValue(ctx, streamed{}, true))
	if err != nil {
		return nil, err
	}
	return &streamBody{ReadCloser: body, ctx: ctx}, nil
}

// streamBody ends with its context. HTTP/2 buffers 4 MiB, which can be gigabytes if they are compressed.
type streamBody struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // Read takes none
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// eventBody is the response to a watch, which has no end: it limits each line, which is an event.
type eventBody struct {
	io.ReadCloser
	line     int
	exceeded error
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		b.line = n - end - 1
	} else {
		b.line += n
	}
	if b.line > maxAnswer {
		return 0, b.exceeded
	}
	return n, err
}

// listBody limits a list, and each of its objects. Next begins the next object.
type listBody struct {
	from     io.Reader
	resource string
	// read is the size of the pages so far, object that of the present object.
	read   *int64
	object int64
}

func (b *listBody) next() { b.object = 0 }

// Read implements io.Reader.
func (b *listBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.object += int64(n)
	*b.read += int64(n)
	switch {
	case b.object > maxAnswer:
		return 0, budget.TooLarge(b.resource, "an object in the list", maxAnswer)
	case *b.read > maxList:
		return 0, budget.TooLarge(b.resource, "the list", maxList)
	}
	return n, err
}

// answer sends a request and returns the body. Unlike DoRaw, it returns errors with the message of
// the server.
func answer(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	err := result.Error()
	var exceeded *budget.ExceededError
	if errors.As(err, &exceeded) {
		return nil, exceeded // client-go adds that the request should be repeated
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
