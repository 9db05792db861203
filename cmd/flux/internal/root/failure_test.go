package root

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const refused = `Deployment/apps/web dry-run failed (Forbidden): deployments.apps "web" is forbidden: exceeded quota: few, requested: count/deployments.apps=1, used: count/deployments.apps=1, limited: count/deployments.apps=1`

// failing returns a cluster whose Kustomization app fails with message. The
// handler answers the lists of the diagnosis.
func failing(t *testing.T, message string, answer http.HandlerFunc) *steered {
	t.Helper()
	s := steer(t, []string{"app"}, func(s *steered, _ controllers.Object, _ int) {
		s.say("app", "False", "ReconciliationFailed", message)
	})
	for _, k := range controllers.Kinds {
		s.Handle("GET "+fleetPath(k), answer)
	}
	s.Handle("GET /apis/apps/v1/namespaces/flux-system/deployments", answer)
	return s
}

// reconciling runs flux reconcile with a timeout for the diagnosis.
func reconciling(ctx context.Context, s *steered, diagnosisTimeout time.Duration) outcome {
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(string) string { return "" }, func() time.Time { return time.Unix(0, 0) })
	a.Client = func() (*kube.Client, error) { return s.Client, nil }
	a.DiagnosisTimeout = diagnosisTimeout
	code := Run(ctx, a, []string{"reconcile", "ks", "app"})
	return outcome{code, out.String(), err.String()}
}

const failedSoFar = `► annotating Kustomization app in flux-system namespace
✔ Kustomization annotated
◎ waiting for Kustomization reconciliation
✗ Kustomization flux-system/app is not ready: ReconciliationFailed: ` + refused + `
  Root cause
    ResourceQuota few exceeded by Deployment/apps/web
  Fix
    raise ResourceQuota few of namespace apps, or reduce the requests of Deployment/apps/web
    flux reconcile kustomization app -n flux-system --with-source
`

// TestFailureOnASlowCluster checks that the diagnosis uses the conditions of the
// object if the cluster does not respond in time.
func TestFailureOnASlowCluster(t *testing.T) {
	t.Parallel()
	s := failing(t, refused, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	want := failedSoFar + `  Could not check
    timed out reading events, pods and logs
`
	expect(t, reconciling(t.Context(), s, time.Millisecond), outcome{1, "", want})
}

// TestFailureWithoutPermissions checks that missing permissions are reported only
// if the root cause is not found without them.
func TestFailureWithoutPermissions(t *testing.T) {
	t.Parallel()
	forbidden := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "forbidden", http.StatusForbidden) }
	for message, want := range map[string]string{
		refused: failedSoFar,
		"it broke": `► annotating Kustomization app in flux-system namespace
✔ Kustomization annotated
◎ waiting for Kustomization reconciliation
✗ Kustomization flux-system/app is not ready: ReconciliationFailed: it broke
  Fix
    flux logs --for Kustomization/app -n flux-system
    flux reconcile kustomization app -n flux-system --with-source
  Could not check
    no permission to read: the controllers in namespace flux-system
`,
	} {
		s := failing(t, message, forbidden)
		for _, k := range controllers.Kinds { // only Kustomizations can be listed in the namespace
			if k.Kind != "Kustomization" {
				s.Handle("GET "+strings.Replace(fleetPath(k), "/"+k.Resource, "/namespaces/flux-system/"+k.Resource, 1), forbidden)
			}
		}
		expect(t, reconciling(t.Context(), s, time.Minute), outcome{1, "", want})
	}
}

// TestInterruptDuringDiagnosis checks that Ctrl-C ends the diagnosis.
func TestInterruptDuringDiagnosis(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s := failing(t, refused, func(_ http.ResponseWriter, r *http.Request) {
		interrupt()
		<-r.Context().Done()
	})
	got := reconciling(ctx, s, time.Minute)
	if got.Code != clierr.ExitInterrupted || !strings.HasSuffix(got.Err, "✗ interrupted\n") || strings.Contains(got.Err, "Root cause") {
		t.Errorf("%+v", got)
	}
}
