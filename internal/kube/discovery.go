package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// applicable reports whether objects of a resource can be applied, in contrast to subresources and
// reviews.
func applicable(r metav1.APIResource) bool {
	return slices.Contains(r.Verbs, "patch") && !strings.Contains(r.Name, "/")
}
