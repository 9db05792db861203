package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

// client returns a Git-over-HTTP client with bounded responses.
func (r Repository) client(ctx context.Context, stop context.CancelCauseFunc) (transport.Transport, error) {
	next, err := r.httpTransport(ctx)
	if err != nil {
		return nil, err
	}
	return githttp.NewClient(&http.Client{Transport: r.bounds().transport(next, stop)}), nil
}

// httpTransport returns the default transport, or a transport with the certificates and the proxy of the remote that
// closes its connections when ctx ends.
func (r Repository) httpTransport(ctx context.Context) (http.RoundTripper, error) {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok || len(r.CABundle)+len(r.Cert)+len(r.Key) == 0 && r.Proxy.URL == "" {
		return http.DefaultTransport, nil
	}
	own := standard.Clone()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(r.Cert) > 0 && len(r.Key) > 0 {
		pair, err := tls.X509KeyPair(r.Cert, r.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if len(r.CABundle) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("reading the system CA certificates: %w", err)
		}
		roots.AppendCertsFromPEM(r.CABundle)
		config.RootCAs = roots
	}
	own.TLSClientConfig = config
	if r.Proxy.URL != "" {
		proxy, err := r.Proxy.FullURL()
		if err != nil {
			return nil, err
		}
		own.Proxy = http.ProxyURL(proxy)
	}
	context.AfterFunc(ctx, own.CloseIdleConnections)
	return own, nil
}

// transport returns a transport that bounds the bodies of responses. A lost connection or a body that exceeds its limit ends
// the session.
func (l limits) transport(next http.RoundTripper, stop context.CancelCauseFunc) http.RoundTripper {
	return web.Wrap(next, func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			if request.Context().Err() == nil && web.Lost(err) {
				stop(&lostError{err})
			}
			return nil, err
		}
		switch body := response.Body; {
		case response.StatusCode >= http.StatusMultipleChoices:
			response.Body = budget.Closing(io.LimitReader(body, l.message), body)
		case strings.HasSuffix(request.URL.Path, "/"+transport.UploadPackServiceName):
			response.Body = bounded(body, objects, l.pack, stop)
		case strings.HasSuffix(request.URL.Path, "/"+transport.ReceivePackServiceName):
			response.Body = bounded(body, reports, l.report, stop)
		default:
			response.Body = bounded(body, references, l.references, stop)
		}
		return response, nil
	})
}

// The names of responses in errors.
const (
	references = "references"
	objects    = "objects"
	reports    = "push messages"
)

// statusOf returns the HTTP status of an error, or 0 for other errors.
func statusOf(err error) int {
	var unexpected *plumbing.UnexpectedError
	var status *githttp.Err
	if errors.As(err, &unexpected) && errors.As(unexpected.Err, &status) {
		return status.StatusCode()
	}
	return 0
}
