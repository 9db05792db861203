package bootstrap

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

// messages records what a run reports while it waits.
type messages struct {
	Progress
	lines []string
}

func (m *messages) Waiting(format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

func (m *messages) Warning(format string, args ...any) { m.Waiting(format, args...) }

// TestWaitsAreReportedOnce repeats the conditions of a controller that retries.
func TestWaitsAreReportedOnce(t *testing.T) {
	t.Parallel()
	m := &messages{}
	in := &installation{progress: m}
	kustomization, _ := controllers.FindKind(controllers.Kustomization)
	w := &wait{in: in, kind: kustomization}
	for _, message := range []string{"Building manifests", "Running health checks", "Building manifests", "Running health checks"} {
		w.report(controllers.Object{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Reconciling", "status": "True", "message": message},
		}}})
	}
	for range 2 {
		in.warn(rollout.Problem{Name: "source-controller", Message: "image not found"})
	}
	want := []string{"Kustomization: Building manifests", "Kustomization: Running health checks", "source-controller: image not found"}
	if diff := cmp.Diff(want, m.lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
