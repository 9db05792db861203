package operator_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/build/operator/template"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// inProcess executes templates in the process of the test.
type inProcess struct{}

func (inProcess) Execute(ctx context.Context, all []build.Template, inputs []map[string]any) ([][]string, error) {
	return template.Execute(ctx, all, inputs)
}

func (inProcess) Kustomize(context.Context, string, build.FileSystem) ([][]byte, error) {
	return nil, errors.New("needs a process of its own")
}

func (inProcess) Allows(string) bool { return false }

// cluster contains objects that ResourceSets refer to.
type cluster []*unstructured.Unstructured

func (c cluster) find(_ context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
	i := slices.IndexFunc(c, func(o *unstructured.Unstructured) bool { return controllers.IDOf(o.Object) == wanted })
	if i < 0 {
		return nil, build.ErrNotFound
	}
	return c[i], nil
}

func (c cluster) selected(_ context.Context, namespace string, selector *metav1.LabelSelector) (all []controllers.ID, err error) {
	selects, err := metav1.LabelSelectorAsSelector(selector)
	for _, o := range c {
		if o.GetKind() == controllers.InputProvider && o.GetNamespace() == namespace && selects.Matches(labels.Set(o.GetLabels())) {
			all = append(all, controllers.IDOf(o.Object))
		}
	}
	slices.SortFunc(all, controllers.ID.Compare)
	return all, err
}

func (c cluster) options() operator.Options {
	return operator.Options{Kustomizer: inProcess{}, Find: c.find, Select: c.selected, Lookup: build.FromObjects(c)}
}

func read(t *testing.T, text []byte) cluster {
	t.Helper()
	objects, err := sourcetree.ReadManifests(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestAsTheOperator compares the objects of ResourceSets with those that flux-operator 0.59.0 has applied to an API server:
// the fields that its field manager owns. uids.yaml contains the UIDs of the providers there.
func TestAsTheOperator(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) != 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			content := map[string][]byte{}
			for _, f := range archive.Files {
				content[f.Name] = f.Data
			}
			uids := map[string]types.UID{}
			if err := yaml.Unmarshal(content["uids.yaml"], &uids); err != nil {
				t.Fatal(err)
			}
			in := read(t, content["input.yaml"])
			got := map[string]map[string]any{}
			for _, o := range in {
				if o.GetKind() == controllers.InputProvider {
					o.SetUID(uids[o.GetName()])
				}
			}
			for _, o := range in {
				if !operator.Renders(o) {
					continue
				}
				result, err := operator.Render(t.Context(), o, in.options())
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range result.Objects {
					got[controllers.IDOf(o.Unstructured.Object).String()] = o.Object
				}
			}
			want := map[string]map[string]any{}
			for _, o := range read(t, content["applied.yaml"]) {
				want[controllers.IDOf(o.Object).String()] = o.Object
			}
			if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
				t.Errorf("%v of %v:\n%s", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), diff)
			}
		})
	}
}
