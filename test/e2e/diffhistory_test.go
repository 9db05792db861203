package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// TestDiffHistory applies the first commits of a history.
func TestDiffHistory(t *testing.T) {
	t.Parallel()
	const brief = 12
	diffHistory(t, historySteps()[:brief])
}

// TestNightlyDiffHistory applies the whole history.
func TestNightlyDiffHistory(t *testing.T) {
	t.Parallel()
	diffHistory(t, historySteps())
}

// diffHistory applies a history commit by commit with the real controllers, and checks
// that the changes that diff --base predicts for each commit are exactly the changes that
// a watch receives.
func diffHistory(t *testing.T, steps []historyStep) {
	t.Helper()
	f := newWhole(t)
	bootstrap(f)
	f.git.commit("Begin", map[string]string{"README.md": "fleet\n"})
	held := map[string]diff.Action{}
	for i, step := range steps {
		name := fmt.Sprintf("%02d %s", i+1, step.name)
		f.git.commit(name, step.files)
		announced := predictCommit(f, held)
		watch := watchChanges(f)
		settleStep(f, step)
		seen := watch.end().history()
		if d := cmp.Diff(announced, seen); d != "" {
			t.Errorf("%s (-announced +seen):\n%s", name, d)
		}
		if step.changes != len(seen) {
			t.Errorf("%s: the controllers changed %d objects, want %d: %v", name, len(seen), step.changes, seen)
		}
	}
}

// historyStep is one commit: files as of gitClient.commit, and how many objects change.
type historyStep struct {
	name    string
	files   map[string]string
	changes int
	// suspended lists Kustomizations that do not reconcile the commit.
	suspended []string
	// config is a value of the ConfigMap of the team after the commit. The ConfigMap of
	// the variables may be applied after the Kustomization that reads it, which is
	// then reconciled once more.
	config string
	// chart is the version of the chart of the release after the commit, or "" if
	// there is no release.
	chart string
	// values is a value of the release after the commit.
	values string
	// gone reports whether the commit deletes the release.
	gone bool
}

// predictCommit returns the changes of the last commit, without a cluster. It adds the
// predicted changes of a suspended Kustomization to held, and returns them when diff
// predicts that the Kustomization is resumed.
func predictCommit(f *fixture, held map[string]diff.Action) map[string]diff.Action {
	f.t.Helper()
	stdout, stderr, err := f.shell.in(f.git.dir).try("flux", "diff", "--base", "HEAD~1", "--head", "HEAD", "--path", "clusters/test",
		"--ignore-field=", "-o", "json", "--exit-code=false", "--kubeconfig=/nonexistent", "--progress-bar=false")
	if err != nil {
		f.t.Fatalf("diff --base: %v\n%s%s", err, stdout, stderr)
	}
	var report struct{ Kustomizations []*diff.Result }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		f.t.Fatalf("reading the diff: %v\n%s", err, stdout)
	}
	actions := map[string]diff.Action{}
	for _, r := range report.Kustomizations {
		if r.NotCompared != nil {
			f.t.Errorf("%s is not compared: %+v", r.Owner, r.NotCompared)
		}
		if r.Suspended {
			maps.Copy(held, actionsOf(r))
			continue
		}
		if slices.ContainsFunc(r.Changes, resumes) {
			maps.Copy(actions, held)
			clear(held)
		}
		for name, action := range actionsOf(r) {
			if before, ok := actions[name]; ok {
				f.t.Errorf("diff lists %s twice: %s and %s", name, before, action)
			}
			actions[name] = action
		}
	}
	maps.DeleteFunc(actions, func(_ string, a diff.Action) bool { return a == diff.Skipped || a == diff.Ignored })
	return actions
}

// resumes reports whether a change resumes its object.
func resumes(c diff.Change) bool {
	return slices.ContainsFunc(c.Dangers, func(d diff.Danger) bool { return d.Rule == "resumed" })
}

// history returns the actions on all objects, excluding objects that Kubernetes and Helm
// create themselves.
func (w clusterChanges) history() map[string]diff.Action {
	actions := w.actions(&diff.Result{}, func(o controllers.Object) bool {
		name := controllers.Name(o)
		return o != nil && name != "kube-root-ca.crt" && !strings.HasPrefix(name, "sh.helm.release.")
	})
	maps.DeleteFunc(actions, func(name string, _ diff.Action) bool { return strings.HasPrefix(name, gadgets.Kind+"/") })
	return actions
}

// settleStep waits until every Kustomization has applied the last commit and the release
// has its chart and values.
func settleStep(f *fixture, step historyStep) {
	f.t.Helper()
	commit := strings.TrimSpace(f.git.run("rev-parse", "HEAD"))
	f.shell.run("flux", "reconcile", "source", "git", "flux-system")
	open, root := map[string]string{}, false
	for _, name := range step.suspended {
		open[name] = "suspended"
	}
	f.eventually("the Kustomizations to apply "+step.name, resource(f.t, "Kustomization"), kube.Selection{}, func(e kube.Event) bool {
		name := controllers.Name(e.Object)
		if open[name] == "suspended" {
			return false
		}
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		done := ready.Status == "True" && text(e.Object, "metadata.deletionTimestamp") == "" && strings.HasSuffix(text(e.Object, "status.lastAppliedRevision"), commit) &&
			text(e.Object, "metadata.generation") == text(e.Object, "status.observedGeneration")
		switch {
		case e.Deleted || done:
			delete(open, name)
		default:
			open[name] = ready.Message
		}
		root = root || name == "flux-system" && done
		return root && len(open) == len(step.suspended)
	})
	if step.config != "" {
		selection := kube.Selection{Namespace: "team", Name: "config"}
		f.eventually("the ConfigMap of "+step.name, configMaps, selection, func(e kube.Event) bool {
			return text(e.Object, "data.a") == step.config
		})
	}
	switch {
	case step.gone:
		f.shell.run("kubectl", "--namespace=flux-system", "wait", "--for=delete", "helmrelease/release", waitFlag)
		return
	case step.chart == "":
		return
	}
	f.eventually("the release of "+step.name, resource(f.t, "HelmRelease"), kube.Selection{Namespace: "flux-system"}, func(e kube.Event) bool {
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		history, _ := controllers.Path{"status.history"}.Lookup(e.Object)
		latest, _ := history.([]any)
		if len(latest) == 0 || ready.Status != "True" || text(e.Object, "metadata.generation") != text(e.Object, "status.observedGeneration") {
			return false
		}
		first, _ := latest[0].(map[string]any)
		return first["chartVersion"] == step.chart && releasedValue(f) == step.values
	})
}

// releasedValue returns the value that the chart of the release renders.
func releasedValue(f *fixture) string {
	f.t.Helper()
	o, err := f.cluster.Client.Get(f.t.Context(), configMaps, "team", "release")
	if err != nil {
		return ""
	}
	return text(o, "data.value")
}
