package kube

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
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

// withPlugin returns a transport that returns when the context of a request ends, even while a
// credential plugin runs, which client-go starts without a context.
func withPlugin(cfg *rest.Config, next http.RoundTripper) http.RoundTripper {
	if cfg.ExecProvider == nil {
		return next
	}
	return pluginTransport{next: next, command: cfg.ExecProvider.Command}
}

type pluginTransport struct {
	next    http.RoundTripper
	command string
}

// pluginGrace is the time that a request may take to return after its context has ended. Only a
// plugin takes longer.
const pluginGrace = 200 * time.Millisecond

// RoundTrip implements http.RoundTripper. If the plugin never exits, its goroutine runs until flux
// exits.
func (t pluginTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	type result struct {
		response *http.Response
		err      error
	}
	done, abandoned := make(chan result), make(chan struct{})
	go func() {
		response, err := t.next.RoundTrip(request)
		select {
		case done <- result{response, err}:
		case <-abandoned:
			if response != nil {
				_ = response.Body.Close() // not read
			}
		}
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
		close(abandoned)
		return nil, &CredentialPluginError{Command: t.command, err: context.Cause(ctx)}
	}
}
