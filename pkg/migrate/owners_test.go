package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

// TestCurrentFields checks that entries of a manager at two versions are merged: the server keeps
// one entry for each manager and version, and would lose the other.
func TestCurrentFields(t *testing.T) {
	t.Parallel()
	entry := func(version, at string, fields map[string]any) map[string]any {
		return map[string]any{"manager": "flux", "operation": "Apply", "apiVersion": "x/" + version, "time": at, "fieldsV1": fields}
	}
	spec := func(name string) map[string]any {
		return map[string]any{"f:spec": map[string]any{"f:" + name: map[string]any{}}}
	}
	o := controllers.Object{"metadata": map[string]any{"managedFields": []any{
		entry("v1beta1", "2026-01-01T00:00:00Z", spec("a")), entry("v1", "2026-01-02T00:00:00Z", spec("b")),
	}}}
	fields, stale := currentFields(o, "x/v1", nil)
	both := map[string]any{"f:spec": map[string]any{"f:a": map[string]any{}, "f:b": map[string]any{}}}
	if diff := cmp.Diff([]any{any(entry("v1", "2026-01-02T00:00:00Z", both))}, fields); diff != "" || !stale {
		t.Errorf("stale %v:\n%s", stale, diff)
	}
	if _, stale := currentFields(controllers.Object{"metadata": map[string]any{"managedFields": fields}}, "x/v1", nil); stale {
		t.Error("current entries reported as stale")
	}
}
