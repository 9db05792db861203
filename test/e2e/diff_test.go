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

// TestDiffPredictsTheController changes many Kustomizations at once and checks that
// the actions of kustomize-controller, as a watch reports them, equal the diff of the
// files for each object.
func TestDiffPredictsTheController(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.bootstrap()
	cases := diffCases(s)
	s.begin(cases)
	for _, c := range cases {
		if c.live != nil {
			c.live(s)
		}
	}

	s.change(cases)
	announced := map[string]*diff.Result{}
	before := s.treeHash()
	for _, c := range cases {
		announced[c.name] = s.announce(c, "--path="+filepath.Join(s.clone, "cases", c.name))
	}
	s.branch("change")
	for _, c := range cases {
		if d := cmp.Diff(announced[c.name].Changes, s.announce(c, "--branch=change").Changes); d != "" {
			t.Errorf("the diff of %s from the branch on the server differs from that of its files (-files +branch):\n%s", c.name, d)
		}
	}
	if after := s.treeHash(); after != before {
		t.Errorf("diff has changed the work tree: %s, before %s", after, before)
	}
	watch := s.witness()
	ready := s.apply(cases)
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
		s.settled(c)
	}
}

// settled checks that there is no difference to the source afterwards.
func (s *story) settled(c diffCase) {
	s.Helper()
	stdout, stderr, err := s.try("flux", "diff", "kustomization", c.name, "--progress-bar=false")
	if c.fails {
		if err == nil {
			s.Errorf("diff of %s, with which the controller fails, found nothing", c.name)
		}
		return
	}
	if err != nil || stdout != "" {
		s.Errorf("%s differs after it was applied: %v\n%s%s", c.name, err, stdout, stderr)
	}
}

// begin applies the initial state of the cases.
func (s *story) begin(cases []diffCase) {
	s.Helper()
	files := map[string]string{}
	for _, c := range cases {
		files["clusters/test/"+c.name+".yaml"] = c.kustomization()
		for name, content := range c.before {
			files[filepath.Join("cases", c.name, name)] = content
		}
	}
	s.commit("Begin", files)
	s.reconcile()
	for _, c := range cases {
		s.run("flux", "wait", "kustomization", c.name)
	}
}

// change writes the changes into the work tree without a commit.
func (s *story) change(cases []diffCase) {
	s.Helper()
	for _, c := range cases {
		dir := filepath.Join(s.clone, "cases", c.name)
		for name, content := range c.after {
			path := filepath.Join(dir, name)
			if content == "" {
				if err := os.Remove(path); err != nil {
					s.Fatal(err)
				}
				continue
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				s.Fatal(err)
			}
		}
	}
}

// treeHash returns Git's hash of all files.
func (s *story) treeHash() string {
	s.Helper()
	s.run("git", "add", "--all")
	return strings.TrimSpace(s.run("git", "write-tree"))
}

// announce returns the diff of a change, with the results of children merged.
func (s *story) announce(c diffCase, from string) *diff.Result {
	s.Helper()
	args := []string{"diff", "kustomization", c.name, from, "-o", "json", "--exit-code=false", "--progress-bar=false"}
	if len(c.children) > 0 {
		args = append(args, "--recursive")
	}
	stdout, stderr, err := s.try("flux", args...)
	if (err != nil) != c.fails {
		s.Fatalf("diff of %s: %v\n%s%s", c.name, err, stdout, stderr)
	}
	var report struct{ Kustomizations []*diff.Result }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Kustomizations) == 0 {
		s.Fatalf("reading the diff of %s: %v\n%s", c.name, err, stdout)
	}
	all := report.Kustomizations[0]
	for _, more := range report.Kustomizations[1:] {
		all.Changes = append(all.Changes, more.Changes...)
	}
	return all
}

// branch pushes the work tree to a branch that no source refers to.
func (s *story) branch(name string) {
	s.Helper()
	tree := s.treeHash()
	commit := strings.TrimSpace(s.run("git", "commit-tree", tree, "-p", "HEAD", "-m", "Try"))
	s.run("git", "push", "--quiet", "origin", commit+":refs/heads/"+name)
}

// apply pushes the change and waits until the controller has reconciled it, successfully or not.
func (s *story) apply(cases []diffCase) map[string]controllers.Condition {
	s.Helper()
	s.run("git", "commit", "--quiet", "--message", "Change")
	s.run("git", "push", "--quiet")
	commit := strings.TrimSpace(s.run("git", "rev-parse", "HEAD"))
	s.run("flux", "reconcile", "source", "git", "flux-system")
	ended := map[string]controllers.Condition{}
	k, _ := controllers.FindKind("Kustomization")
	s.eventually("the Kustomizations to be reconciled", kube.Of(k), kube.Selection{Namespace: "flux-system"}, func(e kube.Event) bool {
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
			s.run("kubectl", "--namespace=flux-system", "wait", "--for=delete", "kustomization/"+name, "--timeout=2m")
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
func (w witnessed) holds(t *testing.T, r *diff.Result) {
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
