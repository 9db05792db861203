package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testdocs"
)

// TestGuideRules evaluates the alerts of the guide with the Prometheus engine, on the documented metrics
// and on additional ones.
func TestGuideRules(t *testing.T) {
	t.Parallel()
	d := testdocs.Read(t, filepath.Join(testcluster.Root(), "docs", "guide", "15-monitoring.md"))
	var rules, documented string
	for _, b := range d.Blocks {
		switch {
		case b.Attributes["title"] != "":
			rules = b.Text
		case b.Language == "output" && strings.Contains(b.Text, "gotk_reconcile_condition{"):
			documented = b.Text
		}
	}
	program, file := buildOutside(t, "rules"), tempFile(t, "rules.yaml", rules)
	for metrics, want := range map[string]string{
		documented: "FluxNotReady{kind=\"Kustomization\", name=\"broken\", namespace=\"flux-system\", status=\"False\", type=\"Ready\"}\n",
		`gotk_suspend_status{kind="HelmRelease",name="app",namespace="apps"} 1` + "\n": "FluxSuspended{kind=\"HelmRelease\", name=\"app\", namespace=\"apps\"}\n",
		`gotk_reconcile_condition{name="app",type="Ready",status="False"} 0` + "\n":    "",
		`gotk_reconcile_condition{name="app",type="Ready",status="True"} 1` + "\n":     "",
		`gotk_resource_info{name="app",ready="False",suspended="false"} 1` + "\n":      "FluxResourceNotReady{name=\"app\", ready=\"False\", suspended=\"false\"}\n",
		`gotk_resource_info{name="app",ready="False",suspended="true"} 1` + "\n":       "",
	} {
		cmd := exec.CommandContext(t.Context(), program, file)
		cmd.Stdin, cmd.Stderr = strings.NewReader(metrics), os.Stderr
		fired, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(fired)); diff != "" {
			t.Errorf("%s\n%s", metrics, diff)
		}
	}
}
