package rehearse

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/pkg/testrun"
)

// What two clusters set differently is removed where they set it, and nowhere else.
func TestNormalized(t *testing.T) {
	object := func(owner, nodePort map[string]any) *unstructured.Unstructured {
		owner["name"], nodePort["port"] = "parent", int64(80)
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "web", "ownerReferences": []any{owner}},
			"spec":     map[string]any{"ports": []any{nodePort}, "gateway": map[string]any{"nodePort": int64(31000), "uid": "1000"}},
		}}
	}
	s := &testrun.Run{Sandbox: &sandbox.Sandbox{GitURL: "http://127.0.0.1:1"}}
	got := (&comparison{}).normalized(s, object(map[string]any{"uid": "a"}, map[string]any{"nodePort": int64(30001)}))
	if d := cmp.Diff(object(map[string]any{}, map[string]any{}).Object, got.Object); d != "" {
		t.Error(d)
	}
}
