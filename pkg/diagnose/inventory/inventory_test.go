package inventory

import (
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestCRDOf checks which CRD of an inventory is that of an object whose kind is not served.
func TestCRDOf(t *testing.T) {
	t.Parallel()
	applier := controllers.Object{"status": map[string]any{"inventory": map[string]any{"entries": []any{
		map[string]any{"id": "_policies.example.com_apiextensions.k8s.io_CustomResourceDefinition", "v": "v1"},
		map[string]any{"id": "_widgetsets.example.com_apiextensions.k8s.io_CustomResourceDefinition", "v": "v1"},
		map[string]any{"id": "apps_gadgets.example.com__ConfigMap", "v": "v1"},
	}}}, "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}
	for _, c := range []struct{ group, kind, want string }{
		{"example.com", "Policy", "policies.example.com"},
		{"example.com", "WidgetSet", "widgetsets.example.com"},
		{"example.org", "Policy", ""},
		{"example.com", "Gadget", ""},
	} {
		if got := crdOf(controllers.ID{Group: c.group, Kind: c.kind, Namespace: "apps", Name: "a"}, applier); got != c.want {
			t.Errorf("%s.%s: got %q, want %q", c.kind, c.group, got, c.want)
		}
	}
}
