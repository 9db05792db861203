package e2e_test

import (
	"testing"
)

// TestCreateFailing creates objects that refer to a source and a chart that do not exist.
func TestCreateFailing(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	f.git.commit("Run nothing", map[string]string{"good/settings.yaml": plainMap})
	failure{name: "create", objects: gitRepository}.prepare(f)
	f.shell.run("flux", "wait", "source", "git", "app", "-n", f.namespace)
	failsWith(f, `
✗ Kustomization NS/app is not ready: ArtifactFailed: [^\n]*"gone" not found
  Root cause
    GitRepository/NS/gone: it does not exist
  Fix
    correct the reference to it, or create it: flux create source git gone -n NS --url=<url> --branch=<branch>
`, "create", "kustomization", "app", "--source=GitRepository/gone", "--path=./good", "--prune", "--interval=1h", "-n", f.namespace)
	failsWith(f, `
✗ timed out after 15s waiting for HelmRelease/NS/app to become ready: SourceNotReady: [^\n]*
  Root cause
    HelmChart/NS/NS-app: chart not found: [^\n]*
    InvalidChartReference: [^\n]*
  Fix
    correct .spec.chart.spec.chart and .spec.chart.spec.version of the HelmRelease of HelmChart/NS/NS-app, or publish the chart
    flux reconcile source chart NS-app -n NS --with-source
`, "create", "helmrelease", "app", "--source=GitRepository/app", "--chart=./gone", "--interval=1h", "--timeout=15s", "-n", f.namespace)
}
