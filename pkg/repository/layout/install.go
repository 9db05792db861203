package layout

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The files that bootstrap writes into the directory flux-system of a cluster.
const (
	ComponentsFile = "gotk-components.yaml"
	SyncFile       = "gotk-sync.yaml"
)

// Path returns the directory in the spec of a Kustomization.
func Path(ks *unstructured.Unstructured) string {
	folder, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	return sourcetree.Clean(folder)
}

// Syncs returns the directory that a FluxInstance syncs, or "".
func Syncs(o *unstructured.Unstructured) string {
	instance := InstanceOf(o)
	if instance == nil {
		return ""
	}
	if folder, _, _ := unstructured.NestedString(instance.Object, "spec", "sync", "path"); folder != "" {
		return sourcetree.Clean(folder)
	}
	return ""
}

// InstanceOf returns the object if it is a FluxInstance, or the FluxInstance that the chart flux-instance creates from the
// values of a HelmRelease. It returns nil for other objects.
func InstanceOf(o *unstructured.Unstructured) *unstructured.Unstructured {
	if controllers.IDOf(o.Object).IsFluxInstance() {
		return o
	}
	spec, _, _ := unstructured.NestedMap(o.Object, "spec", "values", "instance")
	if sync, _, _ := unstructured.NestedString(spec, "sync", "path"); sync == "" || !build.IsHelmRelease(o) {
		return nil
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": controllers.OperatorGroup + "/v1", "kind": controllers.FluxInstance, "spec": spec,
		"metadata": map[string]any{"name": "flux", "namespace": o.GetNamespace()}, // the operator rejects other names
	}}
}

// DefaultSync returns the source and the Kustomization that bootstrap creates for a cluster directory on a branch.
func DefaultSync(namespace, folder, branch string) (source, root *unstructured.Unstructured) {
	object := func(version, kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "spec": spec,
			"metadata": map[string]any{"name": "flux-system", "namespace": namespace},
		}}
	}
	source = object("source.toolkit.fluxcd.io/v1", controllers.GitRepository, map[string]any{
		"interval": "1m0s", "url": noRemote, "ref": map[string]any{"branch": branch},
	})
	return source, object("kustomize.toolkit.fluxcd.io/v1", controllers.Kustomization, map[string]any{
		"interval": "10m0s", "path": "./" + folder, "prune": true,
		"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
	})
}

// noRemote is the address of a repository without a remote.
const noRemote = "https://repository.invalid/rehearsed"
