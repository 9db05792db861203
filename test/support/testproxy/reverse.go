package testproxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Reverse returns a reverse proxy of the server at an address. Responses are not buffered.
//
// The body of a request is read before the request is forwarded. The server closes the body as soon
// as a response begins, and a transport that has sent all of the body, but not yet noticed its end,
// would then fail and cut the response.
func Reverse(address string) (*httputil.ReverseProxy, error) {
	to, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.Out.Body == nil {
				return
			}
			body, err := io.ReadAll(r.Out.Body)
			if err != nil {
				panic(http.ErrAbortHandler) // the client has disconnected
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		FlushInterval: -1,
	}, nil
}
