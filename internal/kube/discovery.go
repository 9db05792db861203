package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube/transport"
)

// Discovery reads the versions and resources that the API server serves.
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
	body, err := transport.Send(ctx, d.raw.Get().AbsPath(path))
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

// AllApplicable returns the resources of the cluster whose objects can be listed and applied, each in the preferred
// version, and the API versions whose resources are unknown because their aggregated API server does not respond.
func (d Discovery) AllApplicable(ctx context.Context) (resources []Resource, unknown []string, err error) {
	groups, err := d.allResourceTypes(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			if version.Freshness == apidiscovery.DiscoveryFreshnessStale && len(version.Resources) == 0 {
				unknown = append(unknown, schema.GroupVersion{Group: group.Name, Version: version.Version}.String())
			}
			version.Resources = slices.DeleteFunc(version.Resources, func(r apidiscovery.APIResourceDiscovery) bool {
				return !slices.Contains(r.Verbs, "list")
			})
			kinds := Applicable(group.Name, version)
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				resources = withResource(resources, kinds[kind])
			}
		}
	}
	return resources, unknown, nil
}

// applicable reports whether objects of a resource can be applied, which excludes subresources and reviews.
func applicable(r metav1.APIResource) bool {
	return slices.Contains(r.Verbs, "patch") && !strings.Contains(r.Name, "/")
}

// ServerVersion returns the Kubernetes version of the server.
func (d Discovery) ServerVersion(ctx context.Context) (*version.Version, error) {
	body, err := transport.Send(ctx, d.raw.Get().AbsPath("/version"))
	if err != nil {
		return nil, fmt.Errorf("reading the Kubernetes version: %w", err)
	}
	var answer struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("parsing the Kubernetes version: %w", err)
	}
	if v, err := version.ParseSemantic(answer.GitVersion); err == nil {
		return v, nil
	}
	// Some vendors use versions that are not semantic versions.
	v, err := version.ParseGeneric(answer.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("parsing the Kubernetes version: %w", err)
	}
	return v, nil
}

// Supports reports whether a version is at least the oldest supported patch version of its minor version. It also
// returns the constraint that applies to the minor version, such as ">=1.33.0-0".
func Supports(v *version.Version, oldest []string) (constraint string, supported bool, err error) {
	for i, text := range oldest {
		// The pre-release suffix allows vendor builds such as 1.33.0-gke.1.
		least, err := version.ParseSemantic(text + "-0")
		if err != nil {
			return "", false, fmt.Errorf("parsing the supported Kubernetes version %q: %w", text, err)
		}
		if i == 0 || least.Major() == v.Major() && least.Minor() == v.Minor() {
			constraint, supported = ">="+text+"-0", v.AtLeast(least)
		}
	}
	return constraint, supported, nil
}
