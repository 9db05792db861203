// Package kube is a client of the Kubernetes API with lists that decode only the required fields,
// server-side apply, and watches. It requests the API versions in the catalog of kinds, and uses
// discovery only if the server does not serve them.
package kube

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube/transport"
)

// dialTimeout is the time after which an address that does not respond is reported as unreachable,
// even if --timeout is longer.
const dialTimeout = 10 * time.Second

// Client is a client of one cluster.
type Client struct {
	// Config is the configuration of the client, without rate limits.
	Config *rest.Config

	dynamic dynamic.Interface
	raw     rest.Interface
	// apart returns a client for responses that are read slowly or never end.
	apart  func() (rest.Interface, error)
	served versions
	notify func(string)
}

// New returns a client. It sends no request.
func New(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	// API Priority and Fairness limits requests; a client-side limit would only delay them.
	cfg.QPS, cfg.Burst = -1, -1
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	alone := rest.CopyConfig(cfg)
	transport.Retrying(cfg, transport.Opening)
	httpClient, err := transport.HTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", cfg.Host, err)
	}
	raw, err := newRaw(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &Client{
		Config: cfg, dynamic: dyn, raw: raw, notify: transport.NotifierOf(cfg),
		apart: sync.OnceValues(func() (rest.Interface, error) { return newStreams(alone) }),
	}, nil
}

// newStreams returns a client with a separate connection for each response. HTTP/2 would buffer 4
// MiB of each response; with separate TCP connections, the data remains in the kernel and on the
// server.
func newStreams(cfg *rest.Config) (rest.Interface, error) {
	cfg.NextProtos = []string{"http/1.1"}
	transport.Retrying(cfg, func(next http.RoundTripper) http.RoundTripper { return next })
	httpClient, err := transport.HTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	return newRaw(cfg, httpClient)
}

// newRaw returns a client for requests to arbitrary paths.
func newRaw(cfg *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	// The codecs of the dynamic client are sufficient, because Status is the only type to decode. The scheme of
	// client-go would register all Kubernetes types on each start.
	plain := dynamic.ConfigFor(cfg)
	plain.GroupVersion = &schema.GroupVersion{}
	raw, err := rest.RESTClientForConfigAndClient(plain, httpClient)
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", cfg.Host, err)
	}
	return raw, nil
}

// Resource identifies a resource of the API server.
type Resource struct {
	schema.GroupVersionResource
	// Kind is the kind of the objects.
	Kind string
	// ClusterScoped reports whether the objects have no namespace.
	ClusterScoped bool

	// both is set if the server may serve either of two versions.
	both *pair
}

func (c *Client) collection(r Resource, namespace string) dynamic.ResourceInterface {
	if r.ClusterScoped || namespace == "" {
		return c.dynamic.Resource(r.GroupVersionResource)
	}
	return c.dynamic.Resource(r.GroupVersionResource).Namespace(namespace)
}

// locate sets the path of an object in a request, or the path of a collection if name is "".
// If a namespace or name would change the path, the request fails before it is sent.
func (r Resource) locate(request *rest.Request, namespace, name string) *rest.Request {
	root := []string{"/api", r.Version}
	if r.Group != "" {
		root = []string{"/apis", r.Group, r.Version}
	}
	request = request.AbsPath(root...).Resource(r.Resource)
	if !r.ClusterScoped {
		request = request.Namespace(namespace)
	}
	if name != "" {
		request = request.Name(name)
	}
	return request
}
