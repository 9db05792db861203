package sources

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// readInstance reads the installation from the FluxInstance of the cluster, if there is one: the namespace, the components, the
// version or range of versions, and the names of the source and the Kustomization. It also adds the OCIRepository if spec.sync
// refers to one, because objects may use it as their source.
func (r *Repository) readInstance(ctx context.Context) error {
	found, err := sourcetree.Search(ctx, r.Tree, []string{"sync", "url"}, func(o *unstructured.Unstructured) bool { return layout.Syncs(o) == r.Path })
	if err != nil || len(found) == 0 {
		return err
	}
	instance := layout.InstanceOf(found[0].Unstructured)
	r.Instance = instance
	text := func(field string) string { return controllers.Path{"spec." + field}.String(instance.Object) }
	r.Namespace = cmp.Or(instance.GetNamespace(), r.Namespace)
	r.Version = text("distribution.version")
	if r.Components, _, _ = unstructured.NestedStringSlice(instance.Object, "spec", "components"); len(r.Components) == 0 {
		r.Components = controllers.Defaults()
	}
	r.Sync = r.defaultSync()
	name, kind := cmp.Or(text("sync.name"), r.Namespace), text("sync.kind")
	for _, o := range r.Sync {
		o.SetName(name)
		spec, _ := o.Object["spec"].(map[string]any)
		if o.GetKind() == controllers.Kustomization {
			spec["sourceRef"] = map[string]any{"kind": controllers.GitRepository, "name": name}
		} else if kind == controllers.GitRepository {
			spec["url"] = text("sync.url")
			if secret := text("sync.pullSecret"); secret != "" {
				spec["secretRef"] = map[string]any{"name": secret}
			}
		}
	}
	if kind == controllers.OCIRepository {
		r.Sync = append(r.Sync, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": r.Sync[0].GetAPIVersion(), "kind": kind, "metadata": map[string]any{"name": name, "namespace": r.Namespace},
			"spec": map[string]any{"interval": "1m0s", "url": text("sync.url"), "ref": map[string]any{"tag": text("sync.ref")}},
		}})
	}
	return nil
}
