package operator

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// instance is the part of the spec of a FluxInstance that determines the source and the Kustomization of the cluster, and the
// arguments of the controllers.
type instance struct {
	CommonMetadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"commonMetadata"`
	Cluster struct {
		Multitenant                 bool   `json:"multitenant"`
		TenantDefaultServiceAccount string `json:"tenantDefaultServiceAccount"`
	} `json:"cluster"`
	Kustomize struct {
		Patches []build.Patch `json:"patches"`
	} `json:"kustomize"`
	Sync *struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		URL        string `json:"url"`
		Ref        string `json:"ref"`
		Path       string `json:"path"`
		PullSecret string `json:"pullSecret"`
		Provider   string `json:"provider"`
		Interval   string `json:"interval"`
	} `json:"sync"`
}

// sync returns the source and the Kustomization of a FluxInstance.
func (r *rendering) sync() (*build.Result, error) {
	s, err := instanceOf(r.owner)
	if err != nil {
		return nil, err
	}
	if s.Sync == nil {
		return &build.Result{}, nil
	}
	source := map[string]any{"url": s.Sync.URL}
	switch s.Sync.Kind {
	case controllers.GitRepository:
		source["ref"] = map[string]any{"name": s.Sync.Ref}
	case controllers.OCIRepository:
		source["ref"] = map[string]any{"tag": s.Sync.Ref}
	case controllers.Bucket:
		source = map[string]any{"endpoint": s.Sync.URL, "bucketName": s.Sync.Ref}
	default:
		return nil, fmt.Errorf("invalid spec.sync.kind %q: must be GitRepository, OCIRepository or Bucket", s.Sync.Kind)
	}
	source["interval"] = cmp.Or(s.Sync.Interval, "1m0s")
	if s.Sync.PullSecret != "" {
		source["secretRef"] = map[string]any{"name": s.Sync.PullSecret}
	}
	if s.Sync.Provider != "" {
		source["provider"] = s.Sync.Provider
	}
	name := cmp.Or(s.Sync.Name, r.owner.GetNamespace())
	manifest := func(version, kind string, spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": version, "kind": kind, "spec": spec, "metadata": map[string]any{
			"name": name, "namespace": r.owner.GetNamespace(),
			"labels": map[string]any{
				"app.kubernetes.io/instance": r.owner.GetNamespace(), "app.kubernetes.io/managed-by": "flux-operator", "app.kubernetes.io/part-of": "flux",
			},
			// The repository may contain the same objects: kustomize-controller leaves them to the operator.
			"annotations": map[string]any{"kustomize.toolkit.fluxcd.io/prune": "Disabled", "kustomize.toolkit.fluxcd.io/ssa": "Ignore"},
		}}
	}
	objects, err := s.patch(r.ctx, r.options.Kustomizer, []map[string]any{
		manifest("source.toolkit.fluxcd.io/v1", s.Sync.Kind, source),
		manifest("kustomize.toolkit.fluxcd.io/v1", controllers.Kustomization, map[string]any{
			"interval": "10m0s", "path": s.Sync.Path, "prune": true, "sourceRef": map[string]any{"kind": s.Sync.Kind, "name": name},
		}),
	})
	if err != nil {
		return nil, err
	}
	for i := range objects {
		objects[i].Owner = controllers.IDOf(r.owner.Object)
		r.label(objects[i].Unstructured, s.CommonMetadata.Labels, s.CommonMetadata.Annotations)
	}
	return &build.Result{Objects: objects}, nil
}

// label adds common metadata and the labels of the owner to an object.
func (r *rendering) label(o *unstructured.Unstructured, labels, annotations map[string]string) {
	prefix := "fluxcd.controlplane.io/"
	if controllers.IDOf(r.owner.Object).IsResourceSet() {
		prefix = "resourceset." + prefix
	}
	owner := map[string]string{prefix + "name": r.owner.GetName(), prefix + "namespace": r.owner.GetNamespace()}
	o.SetLabels(build.Merged(o.GetLabels(), owner, labels))
	if len(annotations) > 0 {
		o.SetAnnotations(build.Merged(o.GetAnnotations(), annotations))
	}
}
