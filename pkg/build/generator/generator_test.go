package generator_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
)

func repository(t *testing.T) fstest.MapFS {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"README.md": "read me", "values.yaml": "a: {b: 1, c: [1, 2]}\nkeep: true\n", "override.yaml": "a: {b: 2, c: [3]}\n---\nd: 4\n",
		"apps/base/web/cm.yaml": "web", "apps/base/web/README.md": "web docs", "apps/base/api/cm.yaml": "api", "apps/base/top.yaml": "top",
		"apps/base/logo.png": "image", "envs/Blue/x.yaml": "blue", "envs/green/x.yaml": "green", "envs/green/deep/y.yaml": "deep",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree["charts/deep/web.tgz"] = &fstest.MapFile{Data: archive(t, "web/Chart.yaml", "name: web")}
	tree["charts/notes.txt"] = &fstest.MapFile{Data: []byte("notes")}
	return tree
}

func archive(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	packed := tar.NewWriter(zipped)
	err := packed.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644})
	if err == nil {
		_, err = packed.Write([]byte(content))
	}
	if err = errors.Join(err, packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func object(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	text := "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: g, namespace: apps}\nspec:\n" + spec
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const sources = "  sources: [{alias: repo, kind: GitRepository, name: fleet}, {alias: other, kind: GitRepository, name: other, namespace: web}]\n"

func artifact(t *testing.T, spec, name string) (map[string]string, error) {
	t.Helper()
	g, err := generator.New(object(t, sources+spec))
	if err != nil {
		return nil, err
	}
	trees := map[controllers.ID]fs.FS{
		controllers.FluxID("GitRepository", "apps", "fleet"): repository(t),
		controllers.FluxID("GitRepository", "web", "other"):  fstest.MapFS{"top.yaml": &fstest.MapFile{Data: []byte("other")}},
	}
	tree, err := g.Artifact(t.Context(), name, func(source controllers.ID) (fs.FS, error) {
		if found, ok := trees[source]; ok {
			return found, nil
		}
		return nil, build.ErrNotFound
	})
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var text []byte
			text, err = fs.ReadFile(tree, name)
			files[name] = string(text)
		}
		return err
	})
	return files, err
}

// TestCopy checks the destinations of files, folders, patterns and archives.
func TestCopy(t *testing.T) {
	t.Parallel()
	for copies, want := range map[string]map[string]string{
		`{from: "@repo/README.md", to: "@artifact/"}`:                                                                         {"README.md": "read me"},
		`{from: "@repo/README.md", to: "@artifact/docs/intro.md"}`:                                                            {"docs/intro.md": "read me"},
		`{from: "@repo/README.md", to: "@artifact/docs/"}`:                                                                    {"docs/README.md": "read me"},
		`{from: "@repo/apps/base/api", to: "@artifact/"}, {from: "@repo/README.md", to: "@artifact/api"}`:                     {"api/cm.yaml": "api", "api/README.md": "read me"},
		`{from: "@repo/envs/green", to: "@artifact/x"}`:                                                                       {"x/green/x.yaml": "green", "x/green/deep/y.yaml": "deep"},
		`{from: "@repo/envs/green/", to: "@artifact/x/"}`:                                                                     {"x/green/x.yaml": "green", "x/green/deep/y.yaml": "deep"},
		`{from: "@repo/envs/green/**", to: "@artifact/x/"}`:                                                                   {"x/x.yaml": "green", "x/deep/y.yaml": "deep"},
		`{from: "@repo/envs/*/x.yaml", to: "@artifact/"}`:                                                                     {"envs/Blue/x.yaml": "blue", "envs/green/x.yaml": "green"},
		`{from: "@repo/apps/base/**", to: "@artifact/", exclude: ["*.md", "api/**"]}`:                                         {"web/cm.yaml": "web", "top.yaml": "top"},
		`{from: "@repo/apps/base/**", to: "@artifact/", exclude: ["apps/base/web"]}`:                                          {"api/cm.yaml": "api", "top.yaml": "top"},
		`{from: "@repo/envs/", to: "@artifact/", exclude: ["green", "envs/none"]}`:                                            {"envs/Blue/x.yaml": "blue"},
		`{from: "@repo/README.md", to: "@artifact/", exclude: ["*.md"]}, {from: "@repo/envs/Blue/x.yaml", to: "@artifact/y"}`: {"y": "blue"},
		`{from: "@repo/apps/base/top.yaml", to: "@artifact/"}, {from: "@other/top.yaml", to: "@artifact/"}`:                   {"top.yaml": "other"},
		`{from: "@repo/values.yaml", to: "@artifact/v.yaml"}, {from: "@repo/override.yaml", to: "@artifact/v.yaml"}`:          {"v.yaml": "a: {b: 2, c: [3]}\n---\nd: 4\n"},
		`{from: "@repo/values.yaml", to: "@artifact/v.yaml"}, {from: "@repo/override.yaml", to: "@artifact/v.yaml", strategy: Merge}`: {
			"v.yaml": "a:\n  b: 2\n  c:\n  - 3\nd: 4\nkeep: true\n",
		},
		`{from: "@repo/override.yaml", to: "@artifact/v.yaml", strategy: Merge}`:                     {"v.yaml": "a: {b: 2, c: [3]}\n---\nd: 4\n"},
		`{from: "@repo/charts/deep/web.tgz", to: "@artifact/charts/", strategy: Extract}`:            {"charts/web/Chart.yaml": "name: web"},
		`{from: "@repo/charts/**", to: "@artifact/", strategy: Extract}`:                             {"web/Chart.yaml": "name: web"},
		`{from: "@repo/charts/*", to: "@artifact/"}`:                                                 {"charts/deep/web.tgz": string(archive(t, "web/Chart.yaml", "name: web")), "charts/notes.txt": "notes"},
		`{from: "@repo/apps/base/logo.png", to: "@artifact/"}, {from: "@other/*", to: "@artifact/"}`: {"top.yaml": "other"},
	} {
		t.Run(copies, func(t *testing.T) {
			t.Parallel()
			got, err := artifact(t, "  artifacts: [{name: one, copy: ["+copies+"]}]\n", "one")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestRefused checks the operations that source-watcher refuses.
func TestRefused(t *testing.T) {
	t.Parallel()
	for copies, want := range map[string]string{
		`{from: "@repo/none/**", to: "@artifact/"}`:                                                                     "no file matches",
		`{from: "@repo/none", to: "@artifact/"}`:                                                                        "does not exist",
		`{from: "@repo/../x", to: "@artifact/"}`:                                                                        "does not exist",
		`{from: "@repo/envs/**", to: "@artifact/../.."}`:                                                                "outside the artifact",
		`{from: "@repo/envs/**", to: "@artifact//etc"}`:                                                                 "invalid destination",
		`{from: "@repo/envs/**", to: "elsewhere/"}`:                                                                     "invalid destination",
		`{from: "@none/envs/**", to: "@artifact/"}`:                                                                     `no source has the alias "none"`,
		`{from: "@repo", to: "@artifact/"}`:                                                                             "must have the form @ALIAS/PATH",
		`{from: "@repo/envs", to: "@artifact/", strategy: Extract}`:                                                     "requires an archive",
		`{from: "@repo/README.md", to: "@artifact/", strategy: Extract}`:                                                "requires a .tar.gz or .tgz file",
		`{from: "@repo/README.md", to: "@artifact/", exclude: ["[a"]}`:                                                  "invalid exclude pattern",
		`{from: "@repo/apps/base/*.md", to: "@artifact/"}`:                                                              "no file matches",
		`{from: "@repo/README.md", to: "@artifact/x"}, {from: "@repo/envs", to: "@artifact/x/y"}`:                       "is a file in the artifact",
		`{from: "@repo/values.yaml", to: "@artifact/v"}, {from: "@repo/README.md", to: "@artifact/v", strategy: Merge}`: "cannot unmarshal",
	} {
		t.Run(copies, func(t *testing.T) {
			t.Parallel()
			got, err := artifact(t, "  artifacts: [{name: one, copy: ["+copies+"]}]\n", "one")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, want)
			}
		})
	}
}

// TestPathPattern checks that the directories of a source make artifacts.
func TestPathPattern(t *testing.T) {
	t.Parallel()
	spec := `  pathPattern: "@repo/envs/{env}"
  artifacts: [{name: "team-{env}", copy: [{from: "@repo/envs/{env}/**", to: "@artifact/{env}/"}]}]
`
	for name, want := range map[string][]string{"team-blue": {"Blue/x.yaml"}, "team-green": {"green/deep/y.yaml", "green/x.yaml"}} {
		got, err := artifact(t, spec, name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(got))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if _, err := artifact(t, spec, "team-deep"); !errors.Is(err, generator.ErrNoArtifact) {
		t.Errorf("a directory that the pattern does not match: %v", err)
	}
	for pattern, want := range map[string]string{"@repo/envs/{env": "unbalanced", "@repo/{env}/{env}": "duplicate", "@none/{env}": "no source", "@repo/envs/{other}": "no placeholder"} {
		if _, err := artifact(t, strings.Replace(spec, "@repo/envs/{env}\"\n", pattern+"\"\n", 1), "team-blue"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", pattern, err, want)
		}
	}
}

// TestArtifacts checks that all artifacts are rendered in order, those of a pattern too.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`  artifacts: [{name: two, copy: [{from: "@repo/README.md", to: "@artifact/"}]}, {name: one, copy: [{from: "@repo/apps/base/web/**", to: "@artifact/"}]}]`: "two: README.md; one: README.md,cm.yaml",
		"  pathPattern: \"@repo/envs/{env}\"\n  artifacts: [{name: \"{env}\", copy: [{from: \"@repo/envs/{env}/**\", to: \"@artifact/\"}]}]":                       "blue: x.yaml; green: deep/y.yaml,x.yaml",
		`  artifacts: [{name: one, copy: [{from: "@repo/README.md", to: "@artifact/"}]}, {name: one, copy: [{from: "@repo/README.md", to: "@artifact/"}]}]`:        `error: ArtifactGenerator/apps/g has two artifacts with the name "one"`,
		`  artifacts: [{name: one, copy: [{from: "@repo/none/**", to: "@artifact/"}]}]`:                                                                            "error: ArtifactGenerator/apps/g: copying @repo/none/** to @artifact/: no file matches",
	} {
		g, err := generator.New(object(t, sources+spec))
		if err != nil {
			t.Fatal(err)
		}
		all, err := g.Artifacts(t.Context(), func(controllers.ID) (fs.FS, error) { return repository(t), nil })
		var got []string
		for _, p := range all {
			var names []string
			err := fs.WalkDir(p.Files, ".", func(name string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					names = append(names, name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Name+": "+strings.Join(names, ","))
		}
		if err != nil {
			got = []string{"error: " + err.Error()}
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s\ngot  %s\nwant %s", spec, text, want)
		}
	}
}

// TestUnavailable checks that a source is read only for the artifacts that copy from it.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	g, err := generator.New(object(t, sources+`  artifacts: [{name: one, copy: [{from: "@repo/README.md", to: "@artifact/"}]}, {name: two, copy: [{from: "@other/top.yaml", to: "@artifact/"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	only := func(source controllers.ID) (fs.FS, error) {
		if source.Name == "fleet" {
			return repository(t), nil
		}
		return nil, build.ErrNotFound
	}
	if _, err := g.Artifact(t.Context(), "one", only); err != nil {
		t.Error(err)
	}
	if _, err := g.Artifact(t.Context(), "two", only); !errors.Is(err, build.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	disabled := object(t, sources+`  artifacts: [{name: one, copy: [{from: "@repo/README.md", to: "@artifact/"}]}]`)
	disabled.SetAnnotations(map[string]string{"source.extensions.fluxcd.io/reconcile": "Disabled"})
	if g, err = generator.New(disabled); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Artifact(t.Context(), "one", only); err == nil || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("disabled: %v", err)
	}
}
