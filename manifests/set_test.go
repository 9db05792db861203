package manifests

import (
	"bytes"
	"compress/gzip"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
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

// TestObjectsAreTyped compares the objects with the output of a strict decoder, which
// rejects unknown fields.
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
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if _, err := w.Write([]byte("a: [")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	broken := fstest.MapFS{"crds/2.9.6/helm.toolkit.fluxcd.io_helmreleases.yaml.gz": {Data: compressed.Bytes()}}
	o := Defaults()
	o.Components, o.Version = []string{"helm-controller"}, "2.9.6"
	_, err := render(o, broken)
	want := "reading embedded crds/2.9.6/helm.toolkit.fluxcd.io_helmreleases.yaml.gz: " +
		"yaml: line 1: did not find expected node content"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func mustYAML(t *testing.T, set *Set) []byte {
	t.Helper()
	data, err := set.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
