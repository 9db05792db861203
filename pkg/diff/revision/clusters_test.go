package revision_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/revision"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// counting counts the charts that it renders.
type counting struct {
	listing
	charted map[string]int
}

func newCounting() *counting { return &counting{charted: map[string]int{}} }

func (c *counting) Render(ctx context.Context, r charts.Release) (*charts.Rendered, error) {
	c.charted[r.Name]++
	return c.listing.Render(ctx, r)
}

// clusters returns a repository with the clusters of the names, which share a chart and a base. Each
// has its own variable, which only the Kustomization local uses.
func clusters(names ...string) map[string]string {
	files := map[string]string{
		"base/cm.yaml": configMap("base", "web", "text: same"),
		"base/release.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: web}
spec: {chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}}
`,
		"local/cm.yaml":             configMap("local", "web", "cluster: \"${cluster}\""),
		"charts/web/Chart.yaml":     "name: web\n",
		"charts/web/templates/a.md": "a",
	}
	for _, name := range names {
		files["clusters/"+name+"/sync.yaml"] = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {url: "https://example.com/fleet"}
---
` + configMap("vars", "flux-system", "cluster: "+name)
		for _, folder := range []string{"base", "local"} {
			files["clusters/"+name+"/"+folder+".yaml"] = fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec:
  path: ./%[1]s
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild: {substituteFrom: [{kind: ConfigMap, name: %s}]}
`, folder, map[string]string{"base": "none", "local": "vars"}[folder])
		}
		files["clusters/"+name+"/none.yaml"] = configMap("none", "flux-system", "a: b")
	}
	return files
}

// linesOf returns the changes of each cluster.
func linesOf(all []revision.Cluster) map[string][]string {
	lines := map[string][]string{}
	for _, c := range all {
		lines[c.Path] = detailed(c.Outcome)
	}
	return lines
}

// detailed returns each change as a line, with its fields and the new object.
func detailed(o *revision.Outcome) []string {
	var lines []string
	for _, r := range o.Results {
		for _, c := range r.Changes {
			if c.Action != diff.Unchanged {
				lines = append(lines, fmt.Sprintf("%s: %s %s %v %v", r.Owner, c.Object, c.Action, c.Fields, c.After))
			}
		}
	}
	return lines
}

// TestClustersShare checks that what clusters have in common is rendered once, and that the result is
// that of comparing each alone.
func TestClustersShare(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	paths := []string{"clusters/a", "clusters/b", "clusters/c", "clusters/d"}
	base, head := clusters(names...), clusters(names...)
	head["charts/web/templates/a.md"] = "b"
	head["base/cm.yaml"] = configMap("base", "web", "text: other")
	head["local/cm.yaml"] = configMap("local", "web", "cluster: \"${cluster}\", changed: \"yes\"")

	alone := map[string][]string{}
	single := newCounting()
	for _, path := range paths {
		o := options(false)
		o.Path, o.Charts.Renderer = path, single
		outcome, err := revision.Compare(t.Context(), repository.Revision{Tree: treeOf(base), Name: "base"}, repository.Revision{Tree: treeOf(head), Name: "head"}, o)
		if err != nil {
			t.Fatal(err)
		}
		alone[path] = detailed(outcome)
	}
	together := newCounting()
	o := options(false)
	o.Charts.Renderer = together
	all, err := revision.Clusters(t.Context(), repository.Revision{Tree: treeOf(base), Name: "base"}, repository.Revision{Tree: treeOf(head), Name: "head"}, paths, o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(alone, linesOf(all)); d != "" {
		t.Errorf("changes of the clusters alone (-) and together (+):\n%s", d)
	}
	// The base once, and the head twice, because the release changes.
	if single.charted["web"] != 12 || together.charted["web"] != 3 {
		t.Errorf("charts rendered: %v alone, %v together, want 12 and 3", single.charted, together.charted)
	}
	// Both sides of the Kustomization base, and the three renderings of the release.
	for i, c := range all {
		if want := []int{0, 5, 5, 5}[i]; c.Shared != want {
			t.Errorf("%s takes over %d renderings, want %d", c.Path, c.Shared, want)
		}
		for _, r := range c.Results {
			if r.Cluster != c.Path {
				t.Errorf("%s has cluster %q", r.Owner, r.Cluster)
			}
		}
	}
}

// TestClustersDiffer checks that clusters that differ in what a rendering reads do not share it.
func TestClustersDiffer(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(files map[string]string){
		"variables": func(files map[string]string) {
			files["clusters/b/none.yaml"] = configMap("none", "flux-system", "a: c")
			files["base/cm.yaml"] = configMap("base", "web", "text: \"${a}\", changed: \"yes\"")
		},
		"missing variables": func(files map[string]string) {
			files["base/cm.yaml"] = configMap("base", "web", "text: \"${a}\", changed: \"yes\"")
			delete(files, "clusters/b/none.yaml")
		},
		"values": func(files map[string]string) {
			files["base/release.yaml"] += "  valuesFrom: [{kind: ConfigMap, name: values, optional: true}]\n"
			files["base/release.yaml"] = strings.Replace(files["base/release.yaml"], "spec: {chart", "spec:\n  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n  x: {chart", 1)
			files["clusters/b/values.yaml"] = configMap("values", "web", "values.yaml: \"replicas: 2\"")
		},
		"files of the source": func(files map[string]string) {
			files["base/cm.yaml"] = configMap("base", "web", "text: changed")
			files["clusters/b/sync.yaml"] = strings.Replace(files["clusters/b/sync.yaml"], "fleet\"}", "fleet\", ignore: /charts}", 1)
		},
		"removed in one": func(files map[string]string) { delete(files, "clusters/b/base.yaml") },
		"removed": func(files map[string]string) {
			maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, "clusters/b/") })
		},
		"broken in one": func(files map[string]string) {
			files["base/cm.yaml"] = configMap("base", "web", "text: changed")
			files["clusters/b/local.yaml"] = strings.Replace(files["clusters/b/local.yaml"], "./local", "./nowhere", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths := []string{"clusters/a", "clusters/b"}
			base, head := clusters("a", "b"), clusters("a", "b")
			edit(head)
			from, to := repository.Revision{Tree: treeOf(base), Name: "base"}, repository.Revision{Tree: treeOf(head), Name: "head"}
			alone, wrong := map[string][]string{}, 0
			for _, path := range paths {
				o := options(false)
				o.Path = path
				outcome, err := revision.Compare(t.Context(), from, to, o)
				if err != nil {
					wrong++
				}
				alone[path] = detailed(outcome)
			}
			// In both orders: the first cluster renders, the second takes over.
			for range 2 {
				slices.Reverse(paths)
				all, err := revision.Clusters(t.Context(), from, to, slices.Clone(paths), options(false))
				if (err != nil) != (wrong > 0) {
					t.Errorf("error %v, want %d", err, wrong)
				}
				if d := cmp.Diff(alone, linesOf(all)); d != "" {
					t.Errorf("changes of the clusters alone (-) and together (+):\n%s", d)
				}
			}
			if len(alone["clusters/a"])+len(alone["clusters/b"]) == 0 {
				t.Error("the edit changes nothing")
			}
		})
	}
}

// TestClusterMessages checks that a message or an error that clusters have in common is reported once.
func TestClusterMessages(t *testing.T) {
	t.Parallel()
	base, head := clusters("a", "b", "c"), clusters("a", "b", "c")
	head["base/cm.yaml"] = "kind: ["
	for _, name := range []string{"a", "b"} {
		delete(head, "clusters/"+name+"/sync.yaml")
	}
	var warned, noted []string
	o := options(false)
	o.Warn, o.Note = func(text string) { warned = append(warned, text) }, func(text string) { noted = append(noted, text) }
	_, err := revision.Clusters(t.Context(), repository.Revision{Tree: treeOf(base), Name: "base"}, repository.Revision{Tree: treeOf(head), Name: "head"},
		[]string{"clusters/a", "clusters/b", "clusters/c"}, o)
	var failed *revision.BuildError
	if !errors.As(err, &failed) || strings.Count(err.Error(), "\n") != 0 || !strings.HasPrefix(err.Error(), "in clusters/a, clusters/b, clusters/c: at head: building Kustomization/flux-system/base: ") {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff([]string{"GitRepository/flux-system/flux-system is not in the repository: assuming that it refers to this repository (in clusters/a, clusters/b)"}, noted); d != "" {
		t.Error(d)
	}
	if len(warned) != 1 || !strings.HasSuffix(warned[0], "(in clusters/a, clusters/b)") || !strings.Contains(warned[0], "ConfigMap/flux-system/vars") {
		t.Errorf("warnings %q", warned)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	base := treeOf(map[string]string{"clusters/a/x": "", "clusters/old/x": "", "clusters/.git/x": "", "clusters/README.md": "", "regions/eu/a/x": "", "regions/us/b/x": "", "clusters/[x]/x": ""})
	head := treeOf(map[string]string{"clusters/a/x": "", "clusters/new/x": "", "clusters/README.md": "", "regions/eu/a/x": ""})
	for pattern, want := range map[string][]string{
		"clusters/*":      {"clusters/[x]", "clusters/a", "clusters/new", "clusters/old"},
		"./clusters/*/":   {"clusters/[x]", "clusters/a", "clusters/new", "clusters/old"},
		"clusters/[a-n]*": {"clusters/a", "clusters/new"},
		"clusters/.*":     {"clusters/.git"},
		"regions/*/?":     {"regions/eu/a", "regions/us/b"},
		"*/a":             {"clusters/a"},
		"clusters/R*":     nil, // a file
		"cluster/*":       nil,
		"clusters/a/x/*":  nil,
		"clusters/**":     nil,
		"clusters/[":      nil,
	} {
		got, err := layout.Match(base, head, pattern)
		var problem *layout.PatternError
		if (want == nil) != errors.As(err, &problem) {
			t.Errorf("%s: error %v", pattern, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", pattern, d)
		}
	}
}
