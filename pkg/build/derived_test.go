package build

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/controllers"
)

func objectsOf(t *testing.T, manifests ...string) []Object {
	t.Helper()
	var objects []Object
	for _, text := range manifests {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, Object{Unstructured: o})
	}
	return objects
}

// TestMark marks what differs between two builds, and nothing else.
func TestMark(t *testing.T) {
	t.Parallel()
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
	for name, c := range map[string]struct {
		one, two []string
		want     [][]string
		alias    string
	}{
		"the same":       {[]string{config + "a}\ndata: {x: y}"}, []string{config + "a}\ndata: {x: y}"}, nil, "a"},
		"a value":        {[]string{config + "a}\ndata: {x: y, z: z}"}, []string{config + "a}\ndata: {x: n, z: z}"}, [][]string{{"data", "x"}}, "a"},
		"a key":          {[]string{config + "a}\ndata: {x: y}"}, []string{config + "a}\ndata: {n: y}"}, [][]string{{"data"}}, "a"},
		"a label":        {[]string{config + "a, labels: {x: y}}"}, []string{config + "a, labels: {x: n}}"}, [][]string{{"metadata", "labels", "x"}}, "a"},
		"a label's key":  {[]string{config + "a, labels: {x: y}}"}, []string{config + "a, labels: {n: y}}"}, [][]string{{"metadata", "labels"}}, "a"},
		"a name":         {[]string{config + "web-a}\ndata: {x: y}"}, []string{config + "web-b}\ndata: {x: y}"}, nil, "web-" + placeholder.Alias("web-a")},
		"only there":     {[]string{config + "a}\ndata: {x: y}"}, nil, [][]string{{"data"}}, placeholder.Alias("a")},
		"another number": {[]string{config + "a}"}, []string{config + "b}", config + "c}"}, nil, placeholder.Alias("a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := objectsOf(t, c.one...)
			Mark(one, objectsOf(t, c.two...))
			if diff := cmp.Diff(c.want, one[0].Secret); diff != "" {
				t.Error(diff)
			}
			if got := one[0].Alias(); got.Name != c.alias {
				t.Errorf("the name is %q, want %q", got.Name, c.alias)
			}
		})
	}
}

// TestPairedOrder pairs objects whose names are derived by their order.
func TestPairedOrder(t *testing.T) {
	t.Parallel()
	var one, two []string
	for i := range 5 {
		one = append(one, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a"+strconv.Itoa(i)+"}\ndata: {same: x, i: '"+strconv.Itoa(i)+"'}")
		two = append(two, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b"+strconv.Itoa(i)+"}\ndata: {same: x, i: '"+strconv.Itoa(i)+"'}")
	}
	two[3] = one[3] // its name is not derived
	objects := objectsOf(t, one...)
	Mark(objects, objectsOf(t, two...))
	for i, o := range objects {
		if len(o.Secret) > 0 || (o.Twin == nil) != (i == 3) {
			t.Errorf("%d: %v, %v", i, o.Secret, o.Twin)
		}
	}
}

// TestDiscreet keeps the part of an error that does not depend on secret values.
func TestDiscreet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, two error
		want     string
	}{
		{errors.New("public failure"), errors.New("public failure"), "public failure"},
		{errors.New("at x.yaml: no 2retnuh here"), errors.New("at x.yaml: no 7abcdef here"), "at x.yaml: no " + hiddenError},
		{errors.New("at x.yaml: no-2retnuh"), errors.New("at x.yaml: no-7abcdef"), "at x.yaml: " + hiddenError},
		{errors.New("2retnuh"), nil, hiddenError},
	} {
		s := NewShadow(nil)
		s.Secret = true
		err := s.Discreet(c.one, c.two, nil)
		if err.Error() != c.want || !errors.Is(err, c.one) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := NewShadow(nil).Discreet(errors.New("x"), nil, nil); err.Error() != "x" {
		t.Errorf("%v without secrets", err)
	}
}

func lookupOf(reads *[]string) Lookup {
	return LookupFunc(func(_ context.Context, object controllers.ID) (map[string][]byte, error) {
		*reads = append(*reads, object.String())
		switch object.Name {
		case "s":
			return map[string][]byte{"word": []byte("hunter2")}, nil
		case "c":
			return map[string][]byte{"open": []byte("public")}, nil
		}
		return nil, ErrNotFound
	})
}

// TestShadowReads reads every object once, although it builds twice.
func TestShadowReads(t *testing.T) {
	t.Parallel()
	var reads []string
	lookup := lookupOf(&reads)
	ks := objectsOf(t, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: apps}\n"+
		"spec: {path: ., postBuild: {substituteFrom: [{kind: Secret, name: s}, {kind: ConfigMap, name: c}, {kind: Secret, name: none, optional: true}]}}")[0]
	tree := inMemory(map[string][]byte{"cm.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {s: '${word}', c: '${open}', x: \"${word:1:3}\"}\n")})
	result, err := Kustomization(t.Context(), tree, ks.Unstructured, Options{Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Secret/apps/s", "ConfigMap/apps/c", "Secret/apps/none"}, reads); diff != "" {
		t.Error(diff)
	}
	got := slices.SortedFunc(slices.Values(result.Objects[0].Secret), slices.Compare)
	if diff := cmp.Diff([][]string{{"data", "s"}, {"data", "x"}}, got); diff != "" {
		t.Error(diff)
	}
}
