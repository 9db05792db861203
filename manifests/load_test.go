package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFromDirReadsWhatExportPrints(t *testing.T) {
	t.Parallel()
	o := allOptions()
	o.Namespace = "gitops"
	rendered := mustRender(t, o)
	data := mustYAML(t, rendered)

	folder := t.TempDir()
	write(t, folder, "gotk-components.yaml", string(data))
	write(t, folder, "README.md", "not a manifest")
	if err := os.Mkdir(filepath.Join(folder, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	parts := t.TempDir()
	middle := strings.Index(string(data), "---\napiVersion: v1\nkind: ServiceAccount")
	write(t, parts, "1-cluster.yml", string(data[:middle]))
	write(t, parts, "2-controllers.yaml", string(data[middle:]))

	for name, path := range map[string]string{
		"a file":               filepath.Join(folder, "gotk-components.yaml"),
		"a directory":          folder,
		"a directory in parts": parts,
		"a path with a slash":  folder + "/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := FromDir(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rendered, set, cmpopts.IgnoreUnexported(Set{})); diff != "" {
				t.Errorf("about the set (-rendered +loaded):\n%s", diff)
			}
			if diff := cmp.Diff(string(data), string(mustYAML(t, set))); diff != "" {
				t.Errorf("manifests (-rendered +loaded):\n%s", diff)
			}
		})
	}
}

func TestFromDirErrors(t *testing.T) {
	t.Parallel()
	const (
		namespace  = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"
		deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: source-controller, namespace: flux-system}\n"
	)
	tests := map[string]struct {
		files map[string]string
		// want contains DIR for the directory and ACCEPTED for the accepted input.
		want string
	}{
		"nothing there":   {nil, "reading manifests: stat DIR: no such file or directory"},
		"empty directory": {map[string]string{"README.md": ""}, "reading manifests: no YAML file in DIR: ACCEPTED"},
		"overlay": {
			map[string]string{"kustomization.yaml": "resources: [flux.yaml]\n", "flux.yaml": namespace + deployment},
			"reading manifests: DIR/kustomization.yaml is a kustomization: build it with `kubectl kustomize DIR > flux.yaml` and use that file",
		},
		"no YAML": {
			map[string]string{"a.yaml": "a: [\n"},
			"reading manifests DIR/a.yaml: yaml: line 1: did not find expected node content",
		},
		"no manifest": {
			map[string]string{"a.yaml": "a: 1\n"},
			`reading manifests DIR/a.yaml: Object 'Kind' is missing in '{"a":1}'`,
		},
		"no name": {
			map[string]string{"a.yaml": "apiVersion: v1\nkind: Namespace\n"},
			"reading manifests DIR: Namespace without a name: ACCEPTED",
		},
		"no controller": {
			map[string]string{"a.yaml": namespace + "---\n# a comment and nothing else\n"},
			"reading manifests DIR: no Flux controller found: ACCEPTED",
		},
		"no namespace": {
			map[string]string{"a.yaml": deployment},
			`reading manifests DIR: no Namespace object "flux-system": ACCEPTED`,
		},
		"not rendered": {
			map[string]string{"source-controller.yaml": strings.Replace(deployment, ", namespace: flux-system", "", 1)},
			`reading manifests DIR: deployment "source-controller" has no namespace: the manifests are not rendered: ACCEPTED`,
		},
		"two namespaces": {
			map[string]string{"a.yaml": namespace + deployment, "b.yaml": strings.ReplaceAll(
				strings.Replace(deployment, "source-", "helm-", 1), "flux-system", "other")},
			`reading manifests DIR: controllers in two namespaces: "flux-system" and "other": ACCEPTED`,
		},
		"twice": {
			map[string]string{"a.yaml": namespace + deployment, "b.yaml": deployment},
			"reading manifests DIR: duplicate object Deployment source-controller: ACCEPTED",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "manifests")
			for file, text := range test.files {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, dir, file, text)
			}
			_, err := FromDir(dir)
			if err == nil {
				t.Fatal("loaded, want an error")
			}
			want := strings.NewReplacer("DIR", dir, "ACCEPTED", accepted).Replace(test.want)
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
