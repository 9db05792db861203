package revision_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/revision"
	"github.com/fluxkit/flux/pkg/repository"
)

// tree is a tree of files in memory.
type tree struct{ fstest.MapFS }

func treeOf(files map[string]string) *tree {
	t := &tree{fstest.MapFS{}}
	for name, text := range files {
		t.MapFS[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o444}
	}
	return t
}

func (t *tree) Hash(name string) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(t.MapFS, name, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			_, err = fmt.Fprintf(sum, "%q %q\n", strings.TrimPrefix(file, name), t.MapFS[file].Data)
		}
		return err
	})
	return fmt.Sprintf("%x", sum.Sum(nil)), err
}

// listing renders every file of a chart with its values as a ConfigMap.
type listing struct{}

func (listing) Render(_ context.Context, r charts.Release) (*charts.Rendered, error) {
	rendered := &charts.Rendered{Chart: r.Name, Version: "1"}
	for _, name := range slices.Sorted(maps.Keys(r.Chart.Files)) {
		manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%s, namespace: %s}\ndata: {text: %q, values: %q}\n",
			r.Name, strings.NewReplacer("/", "-", ".", "-").Replace(strings.ToLower(name)), r.Namespace, r.Chart.Files[name], fmt.Sprint(r.Values))
		rendered.Manifests = append(rendered.Manifests, manifest)
	}
	return rendered, nil
}

func options(all bool) revision.Options {
	return revision.Options{All: all, Options: repository.Options{
		Path: "clusters/production", Namespace: "flux-system", Charts: charts.Options{Renderer: listing{}}, Build: build.Options{KeepUnset: true},
		Remotes: []string{"example.com/fleet"}, Branches: []string{"master"},
	}}
}

func compare(t *testing.T, base, head map[string]string, all bool) (*revision.Outcome, error) {
	t.Helper()
	return revision.Compare(t.Context(), repository.Revision{Tree: treeOf(base), Name: "base"}, repository.Revision{Tree: treeOf(head), Name: "head"}, options(all))
}

// summary returns each change as a line.
func summary(o *revision.Outcome) []string {
	var lines []string
	for _, r := range o.Results {
		for _, c := range r.Changes {
			if c.Action != diff.Unchanged {
				lines = append(lines, fmt.Sprintf("%s: %s %s", r.Owner, c.Object, c.Action))
			}
		}
	}
	return lines
}

const apps = 6

// fleet returns a repository with several Kustomizations and HelmReleases that share a base, a
// component, variables and a chart.
func fleet() map[string]string {
	files := map[string]string{
		"clusters/production/sync.yaml": `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {url: "https://example.com/fleet"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: other, namespace: flux-system}
spec: {url: "https://example.com/other"}
`,
		"clusters/production/vars.yaml":     configMap("vars", "flux-system", "region: eu"),
		"clusters/staging/vars.yaml":        configMap("vars", "flux-system", "region: test"),
		"infra/values.yaml":                 "apiVersion: v1\nkind: Secret\nmetadata: {name: values, namespace: flux-system}\nstringData: {values.yaml: \"password: hunter22\"}\n",
		"base/kustomization.yaml":           "resources: [cm.yaml]\n",
		"base/cm.yaml":                      configMap("base", "", "region: \"${region}\""),
		"component/kustomization.yaml":      "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {by: component}\n",
		"files/settings.txt":                "one\n",
		"charts/web/Chart.yaml":             "name: web\ndependencies: [{repository: \"file://../library\"}]\n",
		"charts/web/templates/a.yaml":       "a",
		"charts/library/Chart.yaml":         "name: library\n",
		"charts/library/templates/lib.yaml": "lib",
	}
	for i := range apps {
		maps.Copy(files, app(i))
	}
	files["clusters/production/infra.yaml"] = kustomization("infra", "infra", "")
	files["clusters/production/artifact.yaml"] = `apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: parts, namespace: flux-system}
spec:
  sources: [{alias: repo, kind: GitRepository, name: fleet}]
  artifacts: [{name: parts, copy: [{from: "@repo/parts/**", to: "@artifact/all/"}]}]
`
	files["clusters/production/parts.yaml"] = strings.Replace(kustomization("parts", "all", ""), "{kind: GitRepository, name: fleet}", "{kind: ExternalArtifact, name: parts}", 1)
	files["parts/a/cm.yaml"], files["parts/b.yaml"] = configMap("a", "parts", "one: two"), configMap("b", "parts", "one: two")
	return files
}

// app returns a Kustomization with its files, whose structure depends on its number.
func app(i int) map[string]string {
	name := fmt.Sprintf("app%d", i)
	spec, list := "", "[../../base]"
	var more string
	switch i % 3 {
	case 1:
		spec = "  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n  components: [../../component]\n"
	case 2:
		list = "[hr.yaml]"
		more = "configMapGenerator: [{name: settings, files: [\"settings=../../files/settings.txt\"]}]\n"
	}
	files := map[string]string{
		"clusters/production/" + name + ".yaml": kustomization(name, "apps/"+name, spec),
		"apps/" + name + "/kustomization.yaml":  "namespace: " + name + "\nresources: " + list + "\n" + more,
	}
	if i%3 == 2 {
		files["apps/"+name+"/hr.yaml"] = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: release}
spec:
  targetNamespace: ` + name + `
  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}}}
`
	}
	return files
}

func configMap(name, namespace, data string) string {
	if namespace != "" {
		namespace = ", namespace: " + namespace
	}
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\ndata: {%s}\n", name, namespace, data)
}

func kustomization(name, folder, spec string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec:
  prune: true
  path: ./%s
  sourceRef: {kind: GitRepository, name: fleet}
%s`, name, folder, spec)
}

// edit is a change of the repository.
type edit struct {
	name string
	do   func(files map[string]string, random *rand.Rand)
}

func replace(file, old, young string) func(map[string]string, *rand.Rand) {
	return func(files map[string]string, _ *rand.Rand) {
		if text, ok := files[file]; ok {
			files[file] = strings.ReplaceAll(text, old, young)
		}
	}
}

var edits = []edit{
	{"base", replace("base/cm.yaml", "data: {", "data: {changed: \"yes\", ")},
	{"component", replace("component/kustomization.yaml", "by: component", "by: another")},
	{"file of a generator", replace("files/settings.txt", "one", "two")},
	{"variables", replace("clusters/production/vars.yaml", "region: eu", "region: us")},
	{"variables of another cluster", replace("clusters/staging/vars.yaml", "region: test", "region: none")},
	{"chart", replace("charts/web/templates/a.yaml", "a", "b")},
	{"chart that a chart needs", replace("charts/library/templates/lib.yaml", "lib", "library")},
	{"nothing that is built", func(files map[string]string, _ *rand.Rand) { files["README.md"] = "read me" }},
	{"address of the source", replace("clusters/production/sync.yaml", "example.com/other", "example.com/another")},
	{"suspended", replace("clusters/production/app0.yaml", "prune: true", "prune: true\n  suspend: true")},
	{"no pruning", replace("clusters/production/app1.yaml", "prune: true", "prune: false")},
	{"patch in a spec", replace("clusters/production/app3.yaml", "prune: true", "prune: true\n  namePrefix: new-")},
	{"values of a release", replace("apps/app2/hr.yaml", "spec:\n", "spec:\n  values: {replicas: 2}\n")},
	{"namespace", replace("apps/app4/kustomization.yaml", "namespace: app4", "namespace: moved")},
	{"file of an artifact", replace("parts/a/cm.yaml", "one: two", "one: three")},
	{"copied files", replace("clusters/production/artifact.yaml", "@repo/parts/**", "@repo/parts/a/**")},
	{"excluded files", func(files map[string]string, _ *rand.Rand) { files["parts/.sourceignore"] = "b.yaml\n" }},
	{"removed", func(files map[string]string, random *rand.Rand) {
		delete(files, fmt.Sprintf("clusters/production/app%d.yaml", random.IntN(apps)))
	}},
	{"added", func(files map[string]string, _ *rand.Rand) { maps.Copy(files, app(apps)) }},
	{"renamed", func(files map[string]string, random *rand.Rand) {
		name := fmt.Sprintf("app%d", random.IntN(apps))
		text, ok := files["clusters/production/"+name+".yaml"]
		if delete(files, "clusters/production/"+name+".yaml"); ok {
			files["clusters/production/renamed.yaml"] = strings.Replace(text, "name: "+name+",", "name: renamed,", 1)
		}
	}},
}

// TestSameAsAll checks that rendering only the affected objects finds the same changes as
// rendering all objects.
func TestSameAsAll(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			base := fleet()
			head := maps.Clone(base)
			var done []string
			for _, i := range random.Perm(len(edits))[:1+random.IntN(3)] {
				e := edits[i]
				e.do(head, random)
				done = append(done, e.name)
			}
			if random.IntN(2) == 0 {
				base, head = head, base
			}
			some, err := compare(t, base, head, false)
			if err != nil {
				t.Fatal(err)
			}
			all, err := compare(t, base, head, true)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(all.Results, some.Results); d != "" {
				t.Errorf("after %q, rendering all finds (-) and rendering some finds (+):\n%s", done, d)
			}
			if all.Followed != some.Followed || all.Rendered != all.Followed {
				t.Errorf("all: %d of %d; some: %d of %d", all.Rendered, all.Followed, some.Rendered, some.Followed)
			}
		})
	}
}

// TestEachEdit checks the changes of each edit, and the number of rendered objects.
func TestEachEdit(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		rendered int
		changes  []string
	}{
		"base": {4, []string{
			"Kustomization/flux-system/app0: ConfigMap/app0/base changed", "Kustomization/flux-system/app1: ConfigMap/app1/base changed",
			"Kustomization/flux-system/app3: ConfigMap/app3/base changed", "Kustomization/flux-system/app4: ConfigMap/app4/base changed",
		}},
		"component": {2, []string{
			"Kustomization/flux-system/app1: ConfigMap/app1/base changed", "Kustomization/flux-system/app4: ConfigMap/app4/base changed",
		}},
		"variables": {3, []string{
			"Kustomization/flux-system/flux-system: ConfigMap/flux-system/vars changed",
			"Kustomization/flux-system/app1: ConfigMap/app1/base changed", "Kustomization/flux-system/app4: ConfigMap/app4/base changed",
		}},
		"variables of another cluster": {0, nil},
		"nothing that is built":        {0, nil},
		"file of an artifact":          {1, []string{"Kustomization/flux-system/parts: ConfigMap/parts/a changed"}},
		"copied files": {2, []string{
			"Kustomization/flux-system/flux-system: ArtifactGenerator/flux-system/parts changed", "Kustomization/flux-system/parts: ConfigMap/parts/b pruned",
		}},
		"excluded files": {1, []string{"Kustomization/flux-system/parts: ConfigMap/parts/b pruned"}},
		"chart": {2, []string{
			"HelmRelease/app2/release: ConfigMap/app2/app2-release-charts-web-templates-a-yaml changed", "HelmRelease/app5/release: ConfigMap/app5/app5-release-charts-web-templates-a-yaml changed",
		}},
		"chart that a chart needs": {2, []string{
			"HelmRelease/app2/release: ConfigMap/app2/app2-release-charts-library-templates-lib-yaml changed", "HelmRelease/app5/release: ConfigMap/app5/app5-release-charts-library-templates-lib-yaml changed",
		}},
	}
	for _, e := range edits {
		w, stated := want[e.name]
		if !stated {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			head := fleet()
			e.do(head, rand.New(rand.NewPCG(1, 1)))
			got, err := compare(t, fleet(), head, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(w.changes, summary(got)); d != "" || got.Rendered != w.rendered {
				t.Errorf("rendered %d, want %d; -want +got:\n%s", got.Rendered, w.rendered, d)
			}
		})
	}
}

// TestBroken checks that what cannot be built is reported with its revision, and that the rest is
// compared.
func TestBroken(t *testing.T) {
	t.Parallel()
	head := fleet()
	head["apps/app0/kustomization.yaml"] = "resources: [missing.yaml]\n"
	edits[1].do(head, nil)
	got, err := compare(t, fleet(), head, false)
	var broken *revision.BuildError
	if !errors.As(err, &broken) || !slices.Equal(broken.Revisions, []string{"head"}) || !strings.Contains(err.Error(), "missing.yaml") {
		t.Fatalf("error %v", err)
	}
	want := []string{"Kustomization/flux-system/app1: ConfigMap/app1/base changed", "Kustomization/flux-system/app4: ConfigMap/app4/base changed"}
	if d := cmp.Diff(want, summary(got)); d != "" {
		t.Error(d)
	}
	if reason := omissionOf(got, "app0"); !strings.HasPrefix(reason, "cannot be built: ") || strings.Contains(reason, "building Kustomization") || !strings.Contains(reason, "missing.yaml") {
		t.Errorf("omission %q", reason)
	}
}

// TestBrokenOnBothSides checks that the same error at both revisions is reported once.
func TestBrokenOnBothSides(t *testing.T) {
	t.Parallel()
	base, head := fleet(), fleet()
	for _, side := range []map[string]string{base, head} {
		side["apps/app0/kustomization.yaml"] = "resources: [missing.yaml]\n"
	}
	head["apps/app0/more.yaml"] = "a: b\n"
	got, err := compare(t, base, head, false)
	var broken *revision.BuildError
	if !errors.As(err, &broken) || strings.Count(err.Error(), "building Kustomization") != 1 || !strings.HasPrefix(err.Error(), "at base and head: ") {
		t.Errorf("error %v", err)
	}
	if omissionOf(got, "app0") == "" {
		t.Error("no omission")
	}
}

// omissionOf returns why an owner was not compared.
func omissionOf(outcome *revision.Outcome, name string) string {
	for _, r := range outcome.Results {
		if r.Owner.Name == name && r.NotCompared != nil {
			return r.NotCompared.Reason
		}
	}
	return ""
}

// TestCycles checks that artifacts and variables that depend on each other end with an omission.
func TestCycles(t *testing.T) {
	t.Parallel()
	const many = 14
	base := fleet()
	for i := range many {
		next, other := (i+1)%many, (i+2)%many
		base[fmt.Sprintf("clusters/production/cycle%d.yaml", i)] = fmt.Sprintf(`apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: cycle%[1]d, namespace: flux-system}
spec:
  sources: [{alias: a, kind: ExternalArtifact, name: cycle%[2]d}, {alias: b, kind: ExternalArtifact, name: cycle%[3]d}]
  artifacts: [{name: cycle%[1]d, copy: [{from: "@a/x", to: "@artifact/"}, {from: "@b/x", to: "@artifact/"}]}]
---
`, i, next, other) + strings.Replace(kustomization(fmt.Sprintf("cycle%d", i), "x", fmt.Sprintf("  postBuild: {substituteFrom: [{kind: ConfigMap, name: from-cycle%d}]}\n", next)),
			"{kind: GitRepository, name: fleet}", fmt.Sprintf("{kind: ExternalArtifact, name: cycle%d}", i), 1)
	}
	head := maps.Clone(base)
	edits[0].do(head, nil)
	got, err := compare(t, base, head, false)
	if err != nil {
		t.Fatal(err)
	}
	omitted := 0
	for _, r := range got.Results {
		if r.NotCompared != nil {
			omitted++
		}
	}
	if changed := len(summary(got)); omitted != many || changed != 4 {
		t.Errorf("%d omitted and %d changed, want %d and 4", omitted, changed, many)
	}
}
