// Package policy reads the annotations and labels with which an object configures its controller.
package policy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The prefixes of the annotations and labels of the controllers.
const (
	Group     = "kustomize.toolkit.fluxcd.io"
	HelmGroup = "helm.toolkit.fluxcd.io"
)

// The reasons why such an object stays unchanged.
const (
	Kept         = keepPolicy + ": keep"
	CRDsKept     = "Helm never deletes CRDs from crds/"
	IfNotPresent = Group + "/ssa: IfNotPresent, and the object exists"
	NotPruned    = Group + "/prune: disabled"
)

const keepPolicy = "helm.sh/resource-policy"

// TextMap returns a map of strings in an object.
func TextMap(o map[string]any, path ...string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(o, path...)
	return m
}

// Marked reports whether an object has an annotation or label of kustomize-controller with the
// given value, such as "reconcile" with "disabled".
func Marked(o map[string]any, name, value string) bool {
	return controllers.HasSetting(o, Group+"/"+name, value)
}

// Excluded returns why kustomize-controller does not manage an object, or "" if it does.
func Excluded(o map[string]any) string {
	switch {
	case Marked(o, "reconcile", "disabled"):
		return Group + "/reconcile: disabled"
	case Marked(o, "ssa", "Ignore"):
		return Group + "/ssa: Ignore"
	default:
		return ""
	}
}

// KeptByHelm reports whether the resource policy of an object prevents its deletion.
func KeptByHelm(o map[string]any) bool {
	return TextMap(o, "metadata", "annotations")[keepPolicy] == "keep"
}

// IsRelease reports whether the object has a Helm release.
func IsRelease(i controllers.ID) bool {
	k, _ := i.Flux()
	return k.Release
}

// UninstallSkips returns why Helm keeps an object when it uninstalls a release, or "" if it deletes
// the object.
func UninstallSkips(ref controllers.VersionedID, o controllers.Object) string {
	switch {
	case KeptByHelm(o):
		return Kept
	case ref.IsCRD() && TextMap(o, "metadata", "annotations")["meta.helm.sh/release-name"] == "":
		return CRDsKept
	}
	return ""
}
