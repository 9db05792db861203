package audit

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

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
				return []hit{{field: field, message: "refers to " + source.String() + " in another namespace", fix: "add the source to the namespace of the object"}}
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

// binding is an admission policy for the namespaces that a selector selects by labels of Flux tenants.
type binding struct {
	id       controllers.ID
	selector *metav1.LabelSelector
	matches  labels.Selector
}

// tenantLabels is the prefix of the labels of namespaces of tenants.
const tenantLabels = "toolkit.fluxcd.io/"

// bindingOf returns the binding of a ValidatingAdmissionPolicy if it selects the namespaces of tenants.
func bindingOf(o *Object) []binding {
	var spec struct {
		MatchResources struct {
			NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		} `json:"matchResources"`
	}
	err := build.Decode(o.Unstructured.Object["spec"], &spec)
	selector := spec.MatchResources.NamespaceSelector
	matches, invalid := metav1.LabelSelectorAsSelector(selector)
	if err != nil || invalid != nil || len(keysOf(selector)) == 0 {
		return nil
	}
	return []binding{{o.ID, selector, matches}}
}

// keysOf returns the labels of tenants in a selector.
func keysOf(selector *metav1.LabelSelector) []string {
	var keys []string
	if selector == nil {
		return nil
	}
	for key := range selector.MatchLabels {
		keys = append(keys, key)
	}
	for _, e := range selector.MatchExpressions {
		keys = append(keys, e.Key)
	}
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, tenantLabels) })
}

// unlabeledTenants finds namespaces of tenants without the labels by which an admission policy selects tenants. A namespace with
// another value of a label is meant not to be selected.
func unlabeledTenants(s *state, o *Object) []hit {
	tenant, is := s.accounts[o.ID.Name]
	if !o.ID.IsNamespace() || !is || o.ID.Name == s.Namespace {
		return nil
	}
	var found []hit
	for _, b := range s.bindings {
		labeled := slices.ContainsFunc(keysOf(b.selector), func(key string) bool { return o.GetLabels()[key] != "" })
		if !labeled && !b.matches.Matches(labels.Set(o.GetLabels())) {
			found = append(found, hit{
				field: "metadata.labels", message: fmt.Sprintf("%s does not apply to the namespace, in which %s is applied with a service account", b.id, tenant),
				fix: "set labels that match " + metav1.FormatLabelSelector(b.selector),
			})
		}
	}
	return found
}
