package rehearse

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/rehearse"
	"github.com/fluxkit/flux/pkg/testrun"
)

// exported sets the objects from the cluster: Namespaces, stubs of Secrets, and manifests of Flux
// objects. Secrets are not read.
func exported(ctx context.Context, a *app.App, r *rehearse.Rehearsal) error {
	client, err := a.Client()
	if err != nil {
		return err
	}
	a.UI.Action("exporting the Flux resources of the cluster")
	never := func(error) bool { return false }
	objects, _, err := client.ListAll(ctx, kube.Selection{}, never, nil)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		return errNoObjects
	}
	if r.From == nil {
		if err := installed(ctx, client, r); err != nil {
			return err
		}
	}
	namespaces, secrets := map[string]*unstructured.Unstructured{}, map[string]*unstructured.Unstructured{}
	var manifests []*unstructured.Unstructured
	for _, o := range objects {
		namespace := controllers.Namespace(o)
		namespaces[namespace] = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
		}}
		for _, ref := range controllers.SecretsOf(o) {
			secrets[namespace+"/"+ref.Name] = stub(namespace, ref.Name)
		}
		if m := testrun.Authored(o); m != nil {
			manifests = append(manifests, m)
		}
	}
	for _, all := range []map[string]*unstructured.Unstructured{namespaces, secrets} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			r.Input.Exported = append(r.Input.Exported, all[name])
		}
	}
	r.Input.Exported = append(r.Input.Exported, manifests...)
	return nil
}

// stub returns a Secret without a real value.
func stub(namespace, name string) *unstructured.Unstructured {
	const value = "stub"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": controllers.Secret, "metadata": map[string]any{"namespace": namespace, "name": name},
		"stringData": map[string]any{"username": value, "password": value, "token": value, "address": "https://stub.invalid"},
	}}
}

// installed sets the current version to the version on the cluster.
func installed(ctx context.Context, client *kube.Client, r *rehearse.Rehearsal) error {
	crd, err := client.Find(ctx, kube.CRDs(), kube.InstalledCRD)
	if err != nil {
		return err
	}
	version := kube.Label(crd, kube.VersionLabel)
	d, ok := controllers.SameMinor(version)
	if !ok {
		return hint.Errorf("select an embedded version with --from", "the version of Flux on the cluster is not embedded: %q", version)
	}
	r.From = &d
	return nil
}
