package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/pkg/controllers"
)

// DryRun returns the result of a forced server-side apply with the given field manager. An object
// without a resourceVersion is new.
func (c *Client) DryRun(ctx context.Context, r Resource, o controllers.Object, manager string) (controllers.Object, error) {
	return c.DryRunAs(ctx, r, o, Applier{Manager: manager})
}

// Applier configures an apply.
type Applier struct {
	Manager string
	// Strict rejects unknown fields.
	Strict bool
}

// DryRunAs is DryRun with the configuration of an applier.
func (c *Client) DryRunAs(ctx context.Context, r Resource, o controllers.Object, by Applier) (controllers.Object, error) {
	body, err := applyBody(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", r.Kind, controllers.Name(o), err)
	}
	request := r.locate(c.raw.Patch(types.ApplyPatchType), controllers.Namespace(o), controllers.Name(o)).
		Param("dryRun", "All").Param("force", "true").Param("fieldManager", by.Manager)
	if by.Strict {
		request.Param("fieldValidation", "Strict")
	}
	body, err = answer(ctx, request.Body(body))
	if err != nil {
		return nil, err
	}
	var result controllers.Object
	if err := utiljson.Unmarshal(body, &result); err != nil {
		return nil, fmt.Errorf("parsing the dry run of %s %q: %w", r.Kind, controllers.Name(o), err)
	}
	return result, nil
}

// Kinds returns the resources of a group version by kind, or an IsNotFound error if the server
// does not serve the group version.
func (c *Client) Kinds(ctx context.Context, gv schema.GroupVersion) (map[string]Resource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	body, err := answer(ctx, c.raw.Get().AbsPath(path))
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("parsing the kinds of %s: %w", gv, err)
	}
	kinds := map[string]Resource{}
	for _, r := range list.APIResources {
		if _, known := kinds[r.Kind]; known || !apply(r) {
			continue // a subresource
		}
		kinds[r.Kind] = Resource{GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, ClusterScoped: !r.Namespaced}
	}
	return kinds, nil
}

// apply reports whether objects of a resource can be applied, in contrast to subresources and
// reviews.
func apply(r metav1.APIResource) bool {
	for _, verb := range r.Verbs {
		if verb == "patch" {
			for _, c := range r.Name {
				if c == '/' {
					return false
				}
			}
			return true
		}
	}
	return false
}
