package transport

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/web"
)

// CredentialPluginError is returned if a credential plugin of the kubeconfig is still running when
// the request that needs it ends.
type CredentialPluginError struct {
	// Command is the program of the plugin.
	Command string
	err     error
}

func (e *CredentialPluginError) Error() string {
	return fmt.Sprintf("the credential plugin %s of the kubeconfig did not respond: %s", e.Command, e.err)
}

// Unwrap returns the reason why the request ended.
func (e *CredentialPluginError) Unwrap() error { return e.err }

// pluginGrace is the maximum time for a request to return after its context has ended. Only
// requests that wait for a plugin take longer.
const pluginGrace = 200 * time.Millisecond

// withPlugin returns a transport that returns when the context of a request ends, even while a
// credential plugin runs, which client-go starts without a context. If the plugin never exits, its
// goroutine runs until flux exits.
func withPlugin(cfg *rest.Config, next http.RoundTripper) http.RoundTripper {
	if cfg.ExecProvider == nil {
		return next
	}
	return web.Wrap(next, func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		type result struct {
			response *http.Response
			err      error
		}
		ctx, done := request.Context(), make(chan result, 1)
		go func() {
			response, err := next.RoundTrip(request)
			done <- result{response, err}
		}()
		select {
		case r := <-done:
			return r.response, r.err
		case <-ctx.Done():
		}
		select {
		case r := <-done:
			return r.response, r.err
		case <-time.After(pluginGrace):
			go func() {
				if r := <-done; r.response != nil {
					_ = r.response.Body.Close() // not read
				}
			}()
			return nil, &CredentialPluginError{Command: cfg.ExecProvider.Command, err: context.Cause(ctx)}
		}
	})
}
