package manifests

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestYAMLReadsBackTheSame(t *testing.T) {
	t.Parallel()
	set := renderAll(t)
	data := mustYAML(t, set)
	back, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(set.Unstructured()), plain(back)); diff != "" {
		t.Errorf("objects (-rendered +read back):\n%s", diff)
	}
	if again := mustYAML(t, renderAll(t)); !bytes.Equal(data, again) {
		t.Errorf("rendered again it differs:\n%s", cmp.Diff(string(data), string(again)))
	}
}

func TestUnstructuredIsACopy(t *testing.T) {
	t.Parallel()
	set := mustRender(t, Defaults())
	before := mustYAML(t, set)
	for _, object := range set.Unstructured() {
		object.SetLabels(nil)
	}
	if diff := cmp.Diff(string(before), string(mustYAML(t, set))); diff != "" {
		t.Errorf("the set changed with the copy (-before +after):\n%s", diff)
	}
}

// TestObjectsAreTyped compares with what a strict decoder makes of the YAML,
// which also proves that no template has a field that Kubernetes does not know.
func TestObjectsAreTyped(t *testing.T) {
	t.Parallel()
	set := renderAll(t)
	got, err := set.Objects()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]runtime.Object, len(set.objects))
	for i, object := range set.objects {
		known := false
		if want[i], known = typed(object.GetKind()); !known {
			if object.GetKind() != "CustomResourceDefinition" {
				t.Errorf("%s has no type", id(object))
			}
			want[i] = object
			continue
		}
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(data, want[i]); err != nil {
			t.Fatalf("%s: %v", id(object), err)
		}
	}
	quantity := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff(want, got, quantity); diff != "" {
		t.Errorf("objects (-decoded +typed):\n%s", diff)
	}
}

func TestObjectsRejectUnknownFields(t *testing.T) {
	t.Parallel()
	set := mustRender(t, Defaults())
	set.objects[0].Object["spek"] = map[string]any{}
	_, err := set.Objects()
	want := `reading Namespace flux-system: strict decoding error: unknown field "spek"`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestRenderWithoutDefinitions(t *testing.T) {
	t.Parallel()
	clone := fstest.MapFS{"crds/README.md": {Data: []byte("generated")}}
	set, err := render(Defaults(), clone)
	if !errors.Is(err, ErrNoCRDs) {
		t.Fatalf("rendered %v, %v, want ErrNoCRDs", set, err)
	}
	want := "this flux was built without the CRDs: " +
		"build it with `make build` instead of `go install`, or set --manifests to rendered manifests"
	if err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
}

func TestRenderWithBrokenDefinition(t *testing.T) {
	t.Parallel()
	broken := fstest.MapFS{"crds/helm.toolkit.fluxcd.io_helmreleases.yaml": {Data: []byte("a: [")}}
	o := Defaults()
	o.Components = []string{"helm-controller"}
	_, err := render(o, broken)
	want := "reading embedded crds/helm.toolkit.fluxcd.io_helmreleases.yaml: " +
		"yaml: line 1: did not find expected node content"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// TestDefinitionsAreGenerated holds the embedded files against a fresh run of the generator.
func TestDefinitionsAreGenerated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "./generate", dir).CombinedOutput(); err != nil {
		t.Fatalf("generating the definitions: %v\n%s", err, out)
	}
	want := contents(t, filepath.Join(dir, "*.yaml"))
	if len(want) == 0 {
		t.Fatal("the generator wrote nothing")
	}
	got := map[string]string{}
	for name := range want {
		data, err := crdFiles.ReadFile("crds/" + name)
		if err != nil {
			t.Fatalf("%v: run `make manifests`", err)
		}
		got[name] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run `make manifests`; definitions (-generated now +embedded):\n%s", diff)
	}
	if files := contents(t, "crds/*.yaml"); len(files) != len(want) {
		t.Errorf("the folder has %d definitions, the generator makes %d", len(files), len(want))
	}
}

// TestDefinitionsAreWrittenAsGenerated checks that only labels are added to the
// generated CRDs.
func TestDefinitionsAreWrittenAsGenerated(t *testing.T) {
	t.Parallel()
	for _, object := range renderAll(t).Unstructured() {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		labels := map[string]string{
			"app.kubernetes.io/component": object.GetLabels()["app.kubernetes.io/component"],
			"app.kubernetes.io/instance":  "flux-system",
			"app.kubernetes.io/part-of":   "flux",
			"app.kubernetes.io/version":   "v" + controllers.Distribution,
		}
		if diff := cmp.Diff(labels, object.GetLabels()); diff != "" {
			t.Errorf("%s labels (-want +rendered):\n%s", id(object), diff)
		}
		object.SetLabels(nil)
		got, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		want, err := crdFiles.ReadFile("crds/" + group + "_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), "---\n"+string(got)); diff != "" {
			t.Errorf("%s (-generated +rendered):\n%s", id(object), diff)
		}
	}
}

func contents(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text[filepath.Base(file)] = string(data)
	}
	return text
}

func mustYAML(t *testing.T, set *Set) []byte {
	t.Helper()
	data, err := set.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
