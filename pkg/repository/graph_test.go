package repository_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

func treeOf(files map[string]string) fs.FS {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o444}
	}
	return tree
}

const ownSource = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {url: "ssh://git@example.com/acme/fleet", ref: {branch: main}}
---
`

func kustomization(name, path, kind, source string) string {
	return fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: flux-system}\nspec: {path: %q, sourceRef: {kind: %s, name: %s}}\n---\n", name, path, kind, source)
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: apps}\n"
}

// deploy returns the objects that a cluster applies, with their owners, and what was not rendered.
func deploy(t *testing.T, files map[string]string, o repository.Options) (objects, omitted []string) {
	t.Helper()
	if o.Path == "" {
		o.Path = "cluster"
	}
	o.Namespace = "flux-system"
	g, err := repository.Open(t.Context(), repository.Revision{Tree: filetree.From(treeOf(files)), Name: "head"}, o)
	if err != nil {
		t.Fatal(err)
	}
	deployed, err := g.Deploy()
	if err != nil {
		t.Fatal(err)
	}
	for _, rendering := range deployed.Renderings {
		for _, object := range rendering.Build.Objects {
			objects = append(objects, fmt.Sprintf("%s by %s", controllers.IDOf(object.Unstructured.Object), controllers.IDOf(rendering.Owner.Object)))
		}
	}
	for _, o := range deployed.Omitted {
		omitted = append(omitted, fmt.Sprintf("%s: %s", o.Owner, o.Reason))
	}
	return objects, omitted
}

func instance(path string) string {
	return "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\n" +
		"spec: {distribution: {version: 2.x}, sync: {kind: GitRepository, url: \"https://example.com/fleet\", ref: refs/heads/main, path: " + path + "}}\n"
}

// instanceRelease returns a HelmRelease with the values of a FluxInstance below a key.
func instanceRelease(key, path string) string {
	return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: flux-instance}\nspec: {chartRef: {kind: OCIRepository, name: flux-instance}, values: {" +
		key + ": {sync: {kind: OCIRepository, url: \"oci://example.com/fleet\", ref: latest, path: " + path + "}}}}\n"
}

// TestInstance begins with the Kustomization and the source that flux-operator creates for a FluxInstance that the cluster applies.
func TestInstance(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"platform/flux.yaml": instanceRelease("instance", "cluster"),
		"cluster/apps.yaml":  kustomization("apps", "./apps", "OCIRepository", "flux-system"), "apps/cm.yaml": configMap("app"),
	}
	for _, deployed := range []bool{false, true} {
		if deployed {
			files["cluster/platform.yaml"] = kustomization("platform", "./platform", "OCIRepository", "flux-system")
		}
		g, err := repository.Open(t.Context(), repository.Revision{Tree: filetree.From(treeOf(files)), Name: "head"}, repository.Options{Path: "cluster", Namespace: "flux-system"})
		if err != nil {
			t.Fatal(err)
		}
		source, err := g.OwnSource()
		if known := source != nil && controllers.IDOf(source.Object).String() == "OCIRepository/flux-system/flux-system"; known != deployed || err != nil {
			t.Errorf("deployed %t: source %v, %v", deployed, source, err)
		}
		if o := repository.Instance(g); (o != nil && o.GetName() == "flux") != deployed || repository.RootAssumed(g) == deployed {
			t.Errorf("deployed %t: instance %v, assumed %t", deployed, o, repository.RootAssumed(g))
		}
		if objects, omitted := deploy(t, files, repository.Options{}); !slices.Contains(objects, "ConfigMap/apps/app by Kustomization/flux-system/apps") || len(omitted) > 0 {
			t.Errorf("deployed %t: %v, omitted %v", deployed, objects, omitted)
		}
	}
}

// TestInstanceOfBoth compares the roots of pairs of revisions with the root of each revision alone.
func TestInstanceOfBoth(t *testing.T) {
	t.Parallel()
	named := func(name string) string {
		return strings.Replace(instance("./cluster"), "name: flux,", "name: "+name+",", 1)
	}
	revisions := map[string]map[string]string{
		"none":            {},
		"in a":            {"a/flux.yaml": named("flux")},
		"in a, other URL": {"a/flux.yaml": strings.Replace(named("flux"), "fleet", "other", 1)},
		"in b":            {"b/flux.yaml": named("beside")},
		"in a and b":      {"a/flux.yaml": named("flux"), "b/flux.yaml": named("beside")},
		"below a":         {"a/ks.yaml": kustomization("deep", "./deep", "GitRepository", "flux-system"), "deep/flux.yaml": named("below")},
		"excluded":        {"a/flux.yaml": named("flux"), "a/kustomization.yaml": "resources: [cm.yaml]\n"},
		"not built":       {"a/flux.yaml": named("flux"), "a/kustomization.yaml": "resources: [missing.yaml]\n"},
		"not applied":     {"c/flux.yaml": named("flux")},
	}
	found := func(g *repository.Graph) string {
		text := fmt.Sprintf("%v assumed %t", g.Root().Object, repository.RootAssumed(g))
		if o := repository.Instance(g); o != nil {
			text += fmt.Sprintf(" by %v", o.Object)
		}
		return text
	}
	alone, trees := map[string]string{}, map[string]repository.Revision{}
	o := repository.Options{Path: "cluster", Namespace: "flux-system"}
	for name, files := range revisions {
		all := maps.Clone(files)
		maps.Copy(all, map[string]string{
			"cluster/ks.yaml": kustomization("a", "./a", "GitRepository", "flux-system") + "---\n" + kustomization("b", "./b", "GitRepository", "flux-system"),
			"a/cm.yaml":       configMap("a"), "b/cm.yaml": configMap("b"),
		})
		trees[name] = repository.Revision{Tree: filetree.From(treeOf(all)), Name: name}
		g, err := repository.Open(t.Context(), trees[name], o)
		if err != nil {
			t.Fatal(err)
		}
		alone[name] = found(g)
	}
	if different := len(slices.Compact(slices.Sorted(maps.Values(alone)))); different < 5 {
		t.Fatalf("the revisions have only %d different roots: %v", different, alone)
	}
	for base := range revisions {
		for head := range revisions {
			was, is, err := repository.OpenBoth(t.Context(), trees[base], trees[head], o)
			if err != nil {
				t.Fatal(err)
			}
			if got := found(was); got != alone[base] {
				t.Errorf("base %q with head %q:\n%s\nalone:\n%s", base, head, got, alone[base])
			}
			if got := found(is); got != alone[head] {
				t.Errorf("head %q with base %q:\n%s\nalone:\n%s", head, base, got, alone[head])
			}
		}
	}
}

// TestRoots finds the clusters of repositories by each convention.
func TestRoots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"bootstrapped": {map[string]string{
			"clusters/a/flux-system/gotk-sync.yaml": ownSource + kustomization("flux-system", "./clusters/a", "GitRepository", "flux-system"),
			"clusters/a/apps.yaml":                  kustomization("apps", "./apps", "GitRepository", "flux-system"),
			"apps/kustomization.yaml":               "resources: []\n",
		}, []string{"clusters/a"}},
		"bootstrap has begun":     {map[string]string{"clusters/a/flux-system/gotk-sync.yaml": "", "clusters/b/flux-system/gotk-sync.yaml": "# empty\n"}, []string{"clusters/a", "clusters/b"}},
		"applies its directory":   {map[string]string{"prod/root.yaml": kustomization("root", "./prod/", "OCIRepository", "fleet")}, []string{"prod"}},
		"the root of the files":   {map[string]string{"root.yaml": kustomization("root", "./", "GitRepository", "flux-system")}, []string{"."}},
		"a source beside it":      {map[string]string{"prod/sync/root.yaml": kustomization("root", "prod", "Bucket", "fleet")}, []string{"prod"}},
		"a FluxInstance":          {map[string]string{"platform/flux.yaml": instance("./clusters/a"), "clusters/a/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system")}, []string{"clusters/a"}},
		"the chart flux-instance": {map[string]string{"platform/flux.yaml": instanceRelease("instance", "clusters/a/"), "clusters/a/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system")}, []string{"clusters/a"}},
		"values of another chart": {map[string]string{"platform/flux.yaml": instanceRelease("web", "clusters/a/"), "clusters/a/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system")}, nil},
		"a directory elsewhere":   {map[string]string{"platform/flux.yaml": instanceRelease("instance", "clusters/b")}, nil},
		// Each application contains the Kustomization that applies it. Another Kustomization creates them.
		"Kustomizations of applications": {map[string]string{
			"cluster/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system"), "platform/flux.yaml": instanceRelease("instance", "cluster"),
			"apps/web/ks.yaml": kustomization("web", "./apps/web", "GitRepository", "flux-system"), "apps/web/kustomization.yaml": "resources: [cm.yaml]\n", "apps/web/cm.yaml": configMap("web"),
			"apps/db/ks.yaml": kustomization("db", "./apps/db", "GitRepository", "flux-system"), "apps/db/cm.yaml": configMap("db"),
		}, []string{"cluster"}},
		"not among its own objects": {map[string]string{
			"prod/root.yaml": kustomization("root", "./prod", "GitRepository", "flux-system"), "prod/kustomization.yaml": "resources: [cm.yaml]\n", "prod/cm.yaml": configMap("web"),
		}, []string{"prod"}},
		"beside a cluster that is bootstrapped": {map[string]string{
			"prod/flux-system/gotk-sync.yaml": ownSource + kustomization("flux-system", "./prod", "GitRepository", "flux-system"),
			"test/root.yaml":                  kustomization("root", "./test", "GitRepository", "flux-system"), "test/kustomization.yaml": "resources: [cm.yaml]\n", "test/cm.yaml": configMap("web"),
		}, []string{"prod", "test"}},
		"a file that nothing applies": {map[string]string{ // it must not hide the clusters
			"clusters/prod/flux-system/gotk-sync.yaml": ownSource + kustomization("flux-system", "./clusters/prod", "GitRepository", "flux-system"),
			"clusters/test/root.yaml":                  kustomization("root", "./clusters/test", "GitRepository", "flux-system"),
			"docs/example.yaml":                        kustomization("all", "./clusters", "GitRepository", "flux-system"),
		}, []string{"clusters/prod", "clusters/test"}},
		"applied from another repository": {map[string]string{
			"a/config/root.yaml": kustomization("a", "./a", "GitRepository", "fleet") + kustomization("flux", "./", "OCIRepository", "flux-manifests"),
			"b/config/root.yaml": kustomization("b", "./b", "GitRepository", "fleet") + kustomization("flux", "./", "OCIRepository", "flux-manifests"),
		}, []string{"a", "b"}},
		"none":                    {map[string]string{"apps/ks.yaml": kustomization("apps", "./other", "GitRepository", "flux-system")}, nil},
		"a template of text":      {map[string]string{"docs/readme.md": kustomization("docs", "./docs", "GitRepository", "flux-system")}, nil},
		"a kustomization of SIGs": {map[string]string{"apps/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: apps}\nresources: [apps]\n"}, nil},
	} {
		got, _, err := layout.Roots(t.Context(), treeOf(c.files))
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// TestUnapplied finds the Kustomizations that nothing in the repository applies, but not those in bases or of other sources.
func TestUnapplied(t *testing.T) {
	t.Parallel()
	cluster := ownSource + kustomization("flux-system", "./prod", "GitRepository", "flux-system")
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"in the cluster":                      {map[string]string{"prod/apps/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system")}, nil},
		"beside the cluster":                  {map[string]string{"product/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system")}, []string{"product"}},
		"below an applied path":               {map[string]string{"prod/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system"), "apps/web/ks.yaml": kustomization("web", "./web", "GitRepository", "other")}, nil},
		"of another source":                   {map[string]string{"prod/ks.yaml": kustomization("apps", "./apps", "GitRepository", "flux-system"), "apps/ks.yaml": kustomization("web", "./", "OCIRepository", "web")}, nil},
		"beside one of another":               {map[string]string{"prod/ks.yaml": kustomization("web", "./", "OCIRepository", "web"), "tenants/ks.yaml": kustomization("team", "./team", "GitRepository", "flux-system")}, []string{"tenants"}},
		"in a base":                           {map[string]string{"prod/kustomization.yaml": "resources: [../base/team]\n", "base/team/ks.yaml": kustomization("team", "./team", "GitRepository", "flux-system")}, nil},
		"a file of a base":                    {map[string]string{"prod/kustomization.yaml": "resources: [../base/ks.yaml]\n", "base/ks.yaml": kustomization("team", "./team", "GitRepository", "flux-system")}, nil},
		"beside a base":                       {map[string]string{"prod/kustomization.yaml": "resources: [../base/team]\n", "base/other/ks.yaml": kustomization("team", "./team", "GitRepository", "flux-system")}, []string{"base/other"}},
		"in its own kustomization":            {map[string]string{"tenants/kustomization.yaml": "resources: [ks.yaml]\n", "tenants/ks.yaml": kustomization("team", "./team", "GitRepository", "flux-system")}, []string{"tenants"}},
		"a kustomization that is a directory": {map[string]string{"apps/kustomization.yaml/ks.yaml": kustomization("team", "./team", "GitRepository", "flux-system")}, []string{"apps/kustomization.yaml"}},
		"in a damaged kustomization":          {map[string]string{"prod/kustomization.yaml": "resources: [", "base/ks.yaml": kustomization("team", "./team", "GitRepository", "flux-system")}, []string{"base"}},
	} {
		c.files["prod/flux-system/gotk-sync.yaml"] = cluster
		found, err := layout.Unapplied(t.Context(), treeOf(c.files), []string{"prod"})
		var got []string
		for _, m := range found {
			got = append(got, path.Dir(m.File))
		}
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// TestIdentity decides which GitRepositories are the repository.
func TestIdentity(t *testing.T) {
	t.Parallel()
	source := func(url string, ref map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "GitRepository", "spec": map[string]any{"url": url, "ref": ref}}}
	}
	main, master := map[string]any{"branch": "main"}, map[string]any{"branch": "master"}
	own := repository.Identity{Remotes: []string{"example.com/acme/fork"}, Own: source("https://example.com/acme/fleet.git", main)}
	branches := repository.Identity{Remotes: []string{"example.com/acme/fleet"}, Branches: []string{"master"}}
	for _, c := range []struct {
		name     string
		identity repository.Identity
		source   *unstructured.Unstructured
		want     bool
	}{
		{"the same", own, source("https://example.com/acme/fleet.git", main), true},
		{"over SSH", own, source("ssh://git@example.com:22/acme/fleet", main), true},
		{"a remote", own, source("https://example.com/acme/fork", main), true},
		{"another branch", own, source("https://example.com/acme/fleet.git", map[string]any{"branch": "dev"}), false},
		{"a tag of the same name", own, source("https://example.com/acme/fleet.git", map[string]any{"tag": "main"}), false},
		{"a commit on the branch", own, source("https://example.com/acme/fleet.git", map[string]any{"branch": "main", "commit": strings.Repeat("a", 40)}), false},
		{"the default branch", own, source("https://example.com/acme/fleet.git", nil), false},
		{"another repository", own, source("https://example.com/acme/fleets", main), false},
		{"a branch", branches, source("https://example.com/acme/fleet", master), true},
		{"the default branch of source-controller", branches, source("https://example.com/acme/fleet", nil), true},
		{"not the branch", branches, source("https://example.com/acme/fleet", main), false},
		{"without branches", repository.Identity{Remotes: []string{"example.com/acme/fleet"}}, source("https://example.com/acme/fleet", main), true},
	} {
		if got := c.identity.Is(c.source); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// TestAssumedSource uses the repository for the source of a cluster that something else installs, whatever its kind.
func TestAssumedSource(t *testing.T) {
	t.Parallel()
	files := func(kind, source string) map[string]string {
		return map[string]string{"cluster/apps.yaml": kustomization("apps", "./apps", kind, source), "apps/cm.yaml": configMap("app")}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"GitRepository": {files("GitRepository", "flux-system"), true},
		"OCIRepository": {files("OCIRepository", "flux-system"), true},
		"another name":  {files("OCIRepository", "apps"), false},
		"a source that is elsewhere": {func() map[string]string {
			f := files("OCIRepository", "flux-system")
			f["cluster/source.yaml"] = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: oci://ghcr.io/acme/fleet}\n"
			return f
		}(), false},
	} {
		objects, omitted := deploy(t, c.files, repository.Options{})
		if got := slices.Contains(objects, "ConfigMap/apps/app by Kustomization/flux-system/apps"); got != c.want || (len(omitted) == 0) != c.want {
			t.Errorf("%s: %v, omitted %v", name, objects, omitted)
		}
	}
}

// contents contains the files of one source.
type contents struct {
	of       string
	files    map[string]string
	requests []string
}

func (c *contents) Content(_ context.Context, r repository.Request) (repository.Content, error) {
	c.requests = append(c.requests, r.Source.String())
	if r.Source.String() != c.of {
		return repository.Content{}, build.ErrNotFound
	}
	return repository.Content{Files: treeOf(c.files)}, nil
}

// TestContents follows a Kustomization into another repository and back, and requests the content of each source once.
func TestContents(t *testing.T) {
	t.Parallel()
	other := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: flux-system}\nspec: {url: https://example.com/acme/other, ignore: \"/docs\\n\"}\n---\n"
	files := map[string]string{
		"cluster/flux-system/gotk-sync.yaml": ownSource + kustomization("flux-system", "./cluster", "GitRepository", "flux-system"),
		"cluster/other.yaml":                 other + kustomization("other", "./deploy", "GitRepository", "other") + kustomization("docs", "./docs", "GitRepository", "other") + kustomization("gone", "./", "GitRepository", "gone"),
		"back/cm.yaml":                       configMap("back"),
	}
	there := &contents{of: "GitRepository/flux-system/other", files: map[string]string{
		"deploy/ks.yaml": kustomization("back", "./back", "GitRepository", "flux-system"), "docs/cm.yaml": configMap("docs"),
	}}
	objects, omitted := deploy(t, files, repository.Options{Contents: there})
	for _, want := range []string{"Kustomization/flux-system/back by Kustomization/flux-system/other", "ConfigMap/apps/back by Kustomization/flux-system/back"} {
		if !slices.Contains(objects, want) {
			t.Errorf("%s is missing in %v", want, objects)
		}
	}
	if d := cmp.Diff([]string{
		"Kustomization/flux-system/docs: cannot be built: cannot build \"docs\": excluded from the artifact by line 1 (\"/docs\") of spec.ignore of GitRepository/flux-system/other",
		"Kustomization/flux-system/gone: GitRepository/flux-system/gone not found among the objects that Kustomization/flux-system/flux-system applies",
	}, omitted); d != "" {
		t.Error(d)
	}
	slices.Sort(there.requests)
	if d := cmp.Diff([]string{"GitRepository/flux-system/gone", "GitRepository/flux-system/other"}, there.requests); d != "" {
		t.Error(d)
	}
}

// TestCycles ends for Kustomizations that apply each other, and for sources that depend on themselves.
func TestCycles(t *testing.T) {
	t.Parallel()
	include := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: %s, namespace: flux-system}\nspec: {url: \"ssh://git@example.com/acme/fleet\", ref: {branch: main}, include: [{repository: {name: %s}}]}\n---\n"
	files := map[string]string{
		"cluster/flux-system/gotk-sync.yaml": ownSource + kustomization("flux-system", "./cluster", "GitRepository", "flux-system"),
		"cluster/all.yaml": kustomization("one", "./one", "GitRepository", "flux-system") + kustomization("three", "./one", "GitRepository", "left") +
			fmt.Sprintf(include, "left", "right") + fmt.Sprintf(include, "right", "left"),
		"one/ks.yaml": kustomization("two", "./two", "GitRepository", "flux-system"),
		"two/ks.yaml": kustomization("one", "./one", "GitRepository", "flux-system") + configMap("two"),
	}
	objects, omitted := deploy(t, files, repository.Options{})
	if n := strings.Count(strings.Join(objects, "\n"), "ConfigMap/apps/two by"); n != 1 {
		t.Errorf("%d ConfigMaps in %v", n, objects)
	}
	if len(omitted) != 1 || !strings.HasPrefix(omitted[0], "Kustomization/flux-system/three: ") || !strings.Contains(omitted[0], "depends on itself") {
		t.Errorf("omitted: %v", omitted)
	}
}
