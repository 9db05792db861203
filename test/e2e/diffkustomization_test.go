package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// TestDiffKustomizations compares diff with the controller for one case of each action.
func TestDiffKustomizations(t *testing.T) {
	t.Parallel()
	diffKustomizations(t, false)
}

func TestNightlyDiffKustomizations(t *testing.T) {
	t.Parallel()
	diffKustomizations(t, true)
}

// diffKustomizations changes many Kustomizations at once and checks that the actions of
// kustomize-controller, as reported by a watch, are equal to the diff of each object.
func diffKustomizations(t *testing.T, nightly bool) {
	t.Helper()
	f := newWhole(t)
	bootstrap(f)
	cases := slices.DeleteFunc(diffCases(f), func(c diffCase) bool { return c.nightly != nightly })
	applyInitial(f, cases)
	for _, c := range cases {
		if c.live != nil {
			c.live(f)
		}
	}

	writeChange(f, cases)
	announced := map[string]*diff.Result{}
	before := treeHash(f)
	for _, c := range cases {
		announced[c.name] = predictKustomization(f, c, "--path="+filepath.Join(f.git.dir, "cases", c.name))
	}
	pushBranch(f, "change")
	for _, c := range cases {
		if d := cmp.Diff(announced[c.name].Changes, predictKustomization(f, c, "--branch=change").Changes); d != "" {
			t.Errorf("the diff of %s from the branch on the server differs from that of its files (-files +branch):\n%s", c.name, d)
		}
	}
	if after := treeHash(f); after != before {
		t.Errorf("diff has changed the work tree: %s, before %s", after, before)
	}
	watch := watchChanges(f)
	ready := applyChange(f, cases)
	seen := watch.end()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if r := ready[c.name]; (r.Status != "True") != c.fails {
				t.Errorf("the controller ended with %s %s: %s", r.Status, r.Reason, r.Message)
			}
			said := actionsOf(announced[c.name])
			if d := cmp.Diff(c.want, said); d != "" {
				t.Errorf("diff (-want +got):\n%s", d)
			}
			done := seen.of(c, announced[c.name])
			// Objects that fail or are ignored cause no watch event.
			maps.DeleteFunc(said, func(_ string, a diff.Action) bool {
				return a == diff.Unchanged || a == diff.Skipped || a == diff.Failed
			})
			if d := cmp.Diff(said, done); d != "" && !c.fails {
				t.Errorf("the controller did something else (-diff +done):\n%s", d)
			}
			if c.fails && len(done) > 0 {
				t.Errorf("the controller should fail, but did %v", done)
			}
			seen.holds(t, announced[c.name])
		})
	}
	for _, c := range cases {
		checkSettled(f, c)
	}
}

// checkSettled checks that nothing differs from the source afterwards.
func checkSettled(f *fixture, c diffCase) {
	f.t.Helper()
	stdout, stderr, err := f.shell.try("flux", "diff", "kustomization", c.name, "--progress-bar=false")
	if c.fails {
		if err == nil {
			f.t.Errorf("diff of %s, with which the controller fails, found nothing", c.name)
		}
		return
	}
	if err != nil || stdout != "" {
		f.t.Errorf("%s differs after it was applied: %v\n%s%s", c.name, err, stdout, stderr)
	}
}

// applyInitial applies the initial state of the cases.
func applyInitial(f *fixture, cases []diffCase) {
	f.t.Helper()
	files := map[string]string{}
	for _, c := range cases {
		files["clusters/test/"+c.name+".yaml"] = c.kustomization()
		for name, content := range c.before {
			files[filepath.Join("cases", c.name, name)] = content
		}
	}
	f.git.commit("Begin", files)
	reconcile(f)
	for _, c := range cases {
		f.shell.run("flux", "wait", "kustomization", c.name)
	}
}

// writeChange writes the changes into the work tree without a commit.
func writeChange(f *fixture, cases []diffCase) {
	f.t.Helper()
	for _, c := range cases {
		dir := filepath.Join(f.git.dir, "cases", c.name)
		for name, content := range c.after {
			path := filepath.Join(dir, name)
			if content == "" {
				if err := os.Remove(path); err != nil {
					f.t.Fatal(err)
				}
				continue
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

// treeHash returns Git's hash of all files.
func treeHash(f *fixture) string {
	f.t.Helper()
	f.git.run("add", "--all")
	return strings.TrimSpace(f.git.run("write-tree"))
}

// predictKustomization returns the diff of a change, with the results of children merged.
func predictKustomization(f *fixture, c diffCase, from string) *diff.Result {
	f.t.Helper()
	args := []string{"diff", "kustomization", c.name, from, "-o", "json", "--exit-code=false", "--progress-bar=false"}
	if len(c.children) > 0 {
		args = append(args, "--recursive")
	}
	stdout, stderr, err := f.shell.try("flux", args...)
	if (err != nil) != c.fails {
		f.t.Fatalf("diff of %s: %v\n%s%s", c.name, err, stdout, stderr)
	}
	var report struct{ Kustomizations []*diff.Result }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Kustomizations) == 0 {
		f.t.Fatalf("reading the diff of %s: %v\n%s", c.name, err, stdout)
	}
	all := report.Kustomizations[0]
	for _, more := range report.Kustomizations[1:] {
		all.Changes = append(all.Changes, more.Changes...)
	}
	return all
}

// pushBranch pushes the work tree to a branch that no source refers to.
func pushBranch(f *fixture, name string) {
	f.t.Helper()
	tree := treeHash(f)
	commit := strings.TrimSpace(f.git.run("commit-tree", tree, "-p", "HEAD", "-m", "Try"))
	f.git.run("push", "--quiet", "origin", commit+":refs/heads/"+name)
}

// applyChange pushes the change and waits until the controller has reconciled it, successfully or not.
func applyChange(f *fixture, cases []diffCase) map[string]controllers.Condition {
	f.t.Helper()
	f.git.run("commit", "--quiet", "--message", "Change")
	f.git.run("push", "--quiet")
	commit := strings.TrimSpace(f.git.run("rev-parse", "HEAD"))
	f.shell.run("flux", "reconcile", "source", "git", "flux-system")
	ended := map[string]controllers.Condition{}
	f.eventually("the Kustomizations to be reconciled", resource(f.t, "Kustomization"), kube.Selection{Namespace: "flux-system"}, func(e kube.Event) bool {
		ready, _ := controllers.FindCondition(e.Object, "Ready")
		name := controllers.Name(e.Object)
		if strings.HasSuffix(text(e.Object, "status.lastAttemptedRevision"), commit) && ready.Status != "Unknown" {
			ended[name] = ready
		}
		return !slices.ContainsFunc(cases, func(c diffCase) bool {
			return slices.ContainsFunc(append(c.children, c.name), func(name string) bool { _, done := ended[name]; return !done })
		})
	})
	for _, c := range cases {
		for _, name := range c.gone {
			f.shell.run("kubectl", "--namespace=flux-system", "wait", "--for=delete", "kustomization/"+name, waitFlag)
		}
	}
	return ended
}

// actionsOf returns the actions of the diff without unchanged objects.
func actionsOf(r *diff.Result) map[string]diff.Action {
	actions := map[string]diff.Action{}
	for _, c := range r.Changes {
		if c.Action != diff.Unchanged {
			actions[c.Object.String()] = c.Action
		}
	}
	return actions
}

// holds checks that the objects have the field values of the diff.
func (w clusterChanges) holds(t *testing.T, r *diff.Result) {
	t.Helper()
	for _, c := range r.Changes {
		if c.Action != diff.Changed && c.Action != diff.Recreated || r.Count(diff.Failed) > 0 {
			continue
		}
		o := w.last[c.Object.String()]
		if len(c.Fields) == 0 && r.Step != diff.Reinstall {
			t.Errorf("%s %s without saying in what", c.Object, c.Action)
		}
		for _, f := range c.Fields {
			got, _ := at(o, f.Pointer)
			want := f.After
			if masked, ok := want.(string); ok && (strings.HasPrefix(masked, "***") || masked == "(differs on every rendering)") {
				continue
			}
			if f.Op == diff.Removed {
				if !f.InList && got != nil && !strings.Contains(f.Pointer, "/0") {
					t.Errorf("%s: %s was to go, and is %v", c.Object, f.Path, got)
				}
				continue
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s was to become %v, and is %v", c.Object, f.Path, want, got)
			}
		}
	}
}

// at follows an RFC 6901 path.
func at(v any, pointer string) (any, bool) {
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch below := v.(type) {
		case map[string]any:
			v = below[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(below) {
				return nil, false
			}
			v = below[i]
		default:
			return nil, false
		}
	}
	return v, v != nil
}
