package audit

import (
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// crossNamespaces finds references to sources in other namespaces. An ArtifactGenerator or ImageUpdateAutomation is meant to
// refer to them.
func crossNamespaces(_ *state, o *Object) []hit {
	k, ok := o.ID.Flux()
	if !ok || k.Source == nil || !applies(o) {
		return nil
	}
	for _, source := range k.Source.Targets(o.Unstructured.Object) {
		if source.Namespace == o.ID.Namespace {
			continue
		}
		for _, field := range k.Source.Path {
			if has(o, field) {
				return []hit{{field: field, message: "refers to " + source.String() + " in another namespace", fix: "add the source to the namespace " + o.ID.Namespace}}
			}
		}
	}
	return nil
}

func applies(o *Object) bool {
	return build.IsKustomization(o.Unstructured) || build.IsHelmRelease(o.Unstructured)
}

// serviceAccounts finds Kustomizations and HelmReleases of tenants that are applied with the permissions of the controller.
func serviceAccounts(s *state, o *Object) []hit {
	return when(applies(o) && s.tenants[o.ID.Namespace] && !s.impersonates && !controllers.IsRemote(o.Unstructured.Object) && text(o, "spec.serviceAccountName") == "", hit{
		field: "spec", message: "applied with the controller's permissions in a tenant namespace", fix: "set spec.serviceAccountName",
	})
}
