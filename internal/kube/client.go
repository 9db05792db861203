// Package kube is the cluster: lean lists, server-side apply and waiting by
// watching. It asks the API directly for the version that the catalogue names
// and looks at discovery only when the server does not serve it.
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
)

// dialTimeout bounds how long a host that does not answer is tried, so that a
// wrong address is reported as such and not as the end of --timeout.
const dialTimeout = 10 * time.Second

// Client is a connection to one cluster.
type Client struct {
	// Config is what the client was made from, without rate limits.
	Config *rest.Config

	dynamic dynamic.Interface
	raw     rest.Interface
	// apart is for answers that are read slowly or never end.
	apart  func() (rest.Interface, error)
	served versions
	notify func(string)
}

// New connects lazily: no request is sent.
func New(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	// The server has priority and fairness; a limit here would only add waiting.
	cfg.QPS, cfg.Burst = -1, -1
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	alone := rest.CopyConfig(cfg)
	wrapRetry(cfg, newOpening)
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", cfg.Host, err)
	}
	c, err := NewForHTTP(cfg, httpClient)
	if err == nil {
		c.apart = sync.OnceValues(func() (rest.Interface, error) { return newStreams(alone) })
	}
	return c, err
}

// newStreams gives every answer a connection of its own. HTTP/2 would read four
// mebibytes of each ahead into memory; TCP leaves them to the kernel and the server.
func newStreams(cfg *rest.Config) (rest.Interface, error) {
	cfg.NextProtos = []string{"http/1.1"}
	wrapRetry(cfg, func(next http.RoundTripper) http.RoundTripper { return next })
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing a connection to %s: %w", cfg.Host, err)
	}
	return newRaw(cfg, httpClient)
}

// NewForHTTP connects with an HTTP client that is already authenticated.
func NewForHTTP(cfg *rest.Config, httpClient *http.Client) (*Client, error) {
	dyn, err := dynamic.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", cfg.Host, err)
	}
	raw, err := newRaw(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &Client{
		Config: cfg, dynamic: dyn, raw: raw, notify: notifier(cfg), apart: func() (rest.Interface, error) { return raw, nil },
	}, nil
}

// newRaw is for requests by their paths.
func newRaw(cfg *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	// The dynamic client's codecs suffice: answers are read here, and the only
	// type to decode is the Status of a refusal. Those of client-go's own scheme
	// would cost every start the registration of all the types of Kubernetes.
	plain := dynamic.ConfigFor(cfg)
	plain.GroupVersion = &schema.GroupVersion{}
	raw, err := rest.RESTClientForConfigAndClient(plain, httpClient)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", cfg.Host, err)
	}
	return raw, nil
}

// Resource names a collection of objects on the server.
type Resource struct {
	schema.GroupVersionResource
	// Kind is the kind of its objects.
	Kind string
	// ClusterScoped says that the objects live in no namespace.
	ClusterScoped bool
}

func (c *Client) collection(r Resource, namespace string) dynamic.ResourceInterface {
	if r.ClusterScoped || namespace == "" {
		return c.dynamic.Resource(r.GroupVersionResource)
	}
	return c.dynamic.Resource(r.GroupVersionResource).Namespace(namespace)
}

// locate puts the path of an object, or of a collection for no name, into a
// request. Namespaces and names that would lead to another path make the
// request fail before it is sent.
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
