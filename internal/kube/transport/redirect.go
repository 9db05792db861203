package transport

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/web"
)

// RedirectError is returned for a redirect to another server. The redirect is not followed, because the transports of
// client-go add the credentials of the kubeconfig to every request, regardless of the server.
type RedirectError struct{ From, To string }

func (e *RedirectError) Error() string {
	return fmt.Sprintf("the API server at %s redirects to %s, which must not receive its credentials: if that address is the API server, set it in the kubeconfig", e.From, e.To)
}

// HTTPClient returns an authenticated HTTP client that follows redirects on the same server only.
func HTTPClient(cfg *rest.Config) (*http.Client, error) {
	shared, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", cfg.Host, err)
	}
	client := *shared // shared may be http.DefaultClient
	client.CheckRedirect = SameServer
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = bounded(withPlugin(cfg, client.Transport))
	return &client, nil
}

// SameServer returns an error for a redirect to another server.
func SameServer(next *http.Request, via []*http.Request) error {
	err := web.SameServer(next, via)
	if other := (*web.RedirectError)(nil); errors.As(err, &other) && other.Method == "" {
		return &RedirectError{From: other.From, To: other.To}
	}
	return err
}
