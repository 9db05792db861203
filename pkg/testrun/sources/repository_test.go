package sources

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

func tree(files map[string]string) fstest.MapFS {
	t := fstest.MapFS{}
	for name, content := range files {
		t[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return t
}

const syncManifest = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: gitops}
spec: {url: "ssh://git@git.example.com:2222/acme/fleet.git"}
`

// TestRepository reads the namespace, the components and the version that bootstrap has written.
func TestRepository(t *testing.T) {
	t.Parallel()
	r := &Repository{Remotes: []string{"git.example.com/mirror/fleet"}, Tree: tree(map[string]string{
		"clusters/a/gitops/gotk-sync.yaml":       syncManifest,
		"clusters/a/gitops/gotk-components.yaml": "---\n# Flux Version: v2.9.3\n# Components: source-controller,kustomize-controller\n",
		"clusters/a/app.yaml":                    "kind: ConfigMap\nmetadata: {name: app}\n---\nkind: Secret\nmetadata: {name: twice}\n",
		"clusters/b/app.yaml":                    "kind: Secret\nmetadata: {name: twice}\n",
		".git/config":                            "not served",
	})}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := []any{r.Path, r.folder, r.Namespace, r.Version, r.Components, r.WatchAll, r.files[".git/config"] != nil}
	want := []any{"clusters/a", "clusters/a/gitops", "gitops", "v2.9.3", []string{"source-controller", "kustomize-controller"}, true, false}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, address := range []string{"https://git.example.com/acme/fleet", "git@git.example.com:mirror/fleet.git"} {
		if !r.Identity().Local(address) {
			t.Errorf("%s is another repository", address)
		}
	}
	for name, file := range map[string]string{"app": "clusters/a/app.yaml", "twice": "", "gone": ""} {
		kind := "Secret"
		if name == "app" {
			kind = "ConfigMap"
		}
		if got := r.FileOf(t.Context(), kind, name); got != file {
			t.Errorf("%s is in %q, want %q", name, got, file)
		}
	}
	set, err := manifests.Render(manifests.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.Served(set)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(files["clusters/a/gitops/gotk-components.yaml"]); !strings.Contains(text, "# Flux Version: v"+set.Version[1:]) || len(files) != len(r.files) {
		t.Errorf("%d files, and the manifests are %.100s", len(files), text)
	}
	if text := string(r.files["clusters/a/gitops/gotk-components.yaml"]); !strings.Contains(text, "v2.9.3") {
		t.Error("the files of the other version have changed")
	}
}

// TestCluster checks which directory is selected without --path and with it.
func TestCluster(t *testing.T) {
	t.Parallel()
	two := map[string]string{"clusters/a/flux-system/gotk-sync.yaml": syncManifest, "clusters/b/flux-system/gotk-sync.yaml": syncManifest, "apps/x.yaml": ""}
	for _, c := range []struct {
		files               map[string]string
		path, folder, error string
	}{
		{two, "", "", "the repository has several clusters: clusters/a, clusters/b"},
		{two, "clusters/b", "clusters/b/flux-system", ""},
		{two, "clusters/b/", "clusters/b/flux-system", ""},
		{two, "clusters", "", ""},
		{two, "apps", "", ""},
		{two, "gone", "", "--path gone: no such directory in the repository"},
		{two, "apps/x.yaml", "", "--path apps/x.yaml: no such directory in the repository"},
		{map[string]string{"apps/x.yaml": ""}, "", "", "no cluster directory found: no Kustomization applies its own directory, and no FluxInstance syncs one"},
	} {
		r := &Repository{Path: c.path, Tree: tree(c.files)}
		err := r.Load(t.Context())
		if err == nil {
			err = errors.New("")
		}
		if err.Error() != c.error || c.error == "" && r.folder != c.folder {
			t.Errorf("path %q: %q and %q, want %q and %q", c.path, r.folder, err, c.folder, c.error)
		}
		if c.error == "" && c.folder == "" && len(r.Sync) != 2 {
			t.Errorf("path %q: %d objects that select it, want a source and a Kustomization", c.path, len(r.Sync))
		}
	}
}

// TestInstance reads the installation that a FluxInstance describes.
func TestInstance(t *testing.T) {
	t.Parallel()
	instance := func(spec string) map[string]string {
		return map[string]string{"clusters/a/flux.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: gitops}\nspec: " + spec + "\n"}
	}
	for name, c := range map[string]struct {
		spec, version, selected string
		components              int
		sync                    []string
	}{
		"Git": {
			"{distribution: {version: 2.9.x}, components: [source-controller, kustomize-controller], sync: {kind: GitRepository, url: 'https://git.example.com/fleet', ref: refs/heads/main, path: clusters/a}}",
			"2.9.x", "2.9.6", 2, []string{"GitRepository/gitops/gitops", "Kustomization/gitops/gitops"},
		},
		"another name": {
			"{distribution: {version: 2.x}, sync: {kind: GitRepository, name: fleet, url: 'https://git.example.com/fleet', ref: refs/heads/main, path: ./clusters/a/}}",
			"2.x", "2.10.0", 4, []string{"GitRepository/gitops/fleet", "Kustomization/gitops/fleet"},
		},
		"OCI": {
			"{distribution: {version: 1.0.x}, sync: {kind: OCIRepository, url: 'oci://registry.example.com/fleet', ref: latest, path: clusters/a}}",
			"1.0.x", "", 4, []string{"GitRepository/gitops/gitops", "Kustomization/gitops/gitops", "OCIRepository/gitops/gitops"},
		},
	} {
		r := &Repository{Tree: tree(instance(c.spec))}
		if err := r.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d, err := r.Distribution(); d.Version != c.selected || (err == nil) != (c.selected != "") {
			t.Errorf("%s: version %q and error %v, want %q", name, d.Version, err, c.selected)
		}
		var sync []string
		for _, o := range r.Sync {
			sync = append(sync, controllers.IDOf(o.Object).String())
		}
		if got, want := []any{r.Path, r.Version, len(r.Components), sync}, []any{"clusters/a", c.version, c.components, c.sync}; !cmp.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if own := name != "OCI"; r.Identity().Local("https://git.example.com/fleet.git") != own {
			t.Errorf("%s: the source is the repository: %t, want %t", name, !own, own)
		}
	}
}
