package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Discovery reads which versions and resources the API server serves.
type Discovery struct{ raw rest.Interface }

// Discovery returns the discovery client of the cluster.
func (c *Client) Discovery() Discovery { return Discovery{c.raw} }

// Kinds returns the resources of a group version by kind, or an IsNotFound error if the server
// does not serve the group version.
func (d Discovery) Kinds(ctx context.Context, gv schema.GroupVersion) (map[string]Resource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	body, err := answer(ctx, d.raw.Get().AbsPath(path))
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("parsing the kinds of %s: %w", gv, err)
	}
	kinds := map[string]Resource{}
	for _, r := range list.APIResources {
		if _, known := kinds[r.Kind]; known || !applicable(r) {
			continue // a subresource
		}
		kinds[r.Kind] = Resource{GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, ClusterScoped: !r.Namespaced}
	}
	return kinds, nil
}

// Applicable returns the resources of an API version whose objects can be applied, by kind.
func Applicable(group string, version apidiscovery.APIVersionDiscovery) map[string]Resource {
	kinds := map[string]Resource{}
	for _, r := range version.Resources {
		if r.ResponseKind == nil || kinds[r.ResponseKind.Kind].Kind != "" || !slices.Contains(r.Verbs, "patch") {
			continue
		}
		kinds[r.ResponseKind.Kind] = Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version.Version, Resource: r.Resource},
			Kind:                 r.ResponseKind.Kind, ClusterScoped: r.Scope == apidiscovery.ScopeCluster,
		}
	}
	return kinds
}

// applicable reports whether objects of a resource can be applied, in contrast to subresources and
// reviews.
func applicable(r metav1.APIResource) bool {
	return slices.Contains(r.Verbs, "patch") && !strings.Contains(r.Name, "/")
}
