package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	before := controllers.Object{
		"metadata": map[string]any{"name": "a", "resourceVersion": "1", "generation": int64(1), "labels": map[string]any{"old": "x"}},
		"spec":     map[string]any{"interval": "1m", "count": int64(3), "list": []any{int64(1), map[string]any{"a": int64(2)}}, "gone": true},
		"status":   map[string]any{"a": "b"},
	}
	after := controllers.Object{
		"metadata": map[string]any{"name": "a", "resourceVersion": "2", "generation": int64(2), "managedFields": []any{}, "labels": map[string]any{"new": "x"}},
		"spec":     map[string]any{"interval": "2m", "count": int64(3), "list": []any{int64(1), map[string]any{"a": int64(2)}}},
	}
	want := []string{"metadata.labels.new", "metadata.labels.old", "spec.gone", "spec.interval"}
	if diff := cmp.Diff(want, Upserted{Before: before, After: after}.Changes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := (Upserted{Before: after, After: after}).Changes(); len(got) > 0 {
		t.Errorf("nothing has changed, but: %q", got)
	}
}
