package output_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/terminal/output"
)

// TestListWriter compares a list that is written object by object with one that is printed at
// once.
func TestListWriter(t *testing.T) {
	t.Parallel()
	odd := app("odd", "no")
	odd.Object["spec"] = map[string]any{
		"html": "<a href=\"x\">&</a>", "lines": "one\n  two\n\nthree ", "tab": "\t", "empty": map[string]any{}, "none": []any{}, "null": nil,
		"numbers": []any{int64(1), int64(-9007199254740993), 1.5, 1e21, true}, "yes": "yes", "long": strings.Repeat("a long text that has to be folded ", 10),
		"nested": []any{[]any{map[string]any{"a": []any{"b: c", "- d", "# e"}}}}, "control": "\u2028\x07é",
	}
	lists := map[string][]*unstructured.Unstructured{"none": {}, "one": {app("app", "no")}, "three": {app("app", "no"), odd, app("other", "yes")}}
	for _, format := range []string{"json", "yaml", "name"} {
		for name, list := range lists {
			t.Run(format+"/"+name, func(t *testing.T) {
				t.Parallel()
				var want, got strings.Builder
				var items []unstructured.Unstructured
				w, ok := output.NewListWriter(&got, format)
				if !ok {
					t.Fatal("not written object by object")
				}
				for _, o := range list {
					items = append(items, *o.DeepCopy())
					if err := w.Add(o.DeepCopy().Object); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if err := output.PrintObjects(&want, format, items, false); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.String(), got.String()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
	if _, ok := output.NewListWriter(&strings.Builder{}, "jsonpath={.items}"); ok {
		t.Error("a template needs all objects")
	}
}
