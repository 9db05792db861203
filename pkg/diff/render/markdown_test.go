package render_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// created returns the result of a Kustomization that creates objects of the given size.
func created(objects, size int) []*diff.Result {
	r := &diff.Result{Owner: diff.Ref{Kind: "Kustomization", Namespace: "flux-system", Name: "app"}}
	for i := range objects {
		name := fmt.Sprintf("object-%d", i)
		r.Changes = append(r.Changes, diff.Change{
			Object: diff.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}, Action: diff.Created,
			After: &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": strings.Repeat("ä", size)}}},
		})
	}
	return []*diff.Result{r}
}

func TestMarkdownFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		objects, size int
		says          string
	}{
		{3, 10, "3 created"},
		{500, 400, "500 created"},
		{3, 100_000, "Details of 3 of 3 changes are left out"},
		{4_000, 1, "changes are left out"},
	} {
		var b strings.Builder
		if err := render.Markdown(&b, created(c.objects, c.size), render.CommentMax); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if len(text) > render.CommentMax || !strings.Contains(text, c.says) {
			t.Errorf("%d objects of %d: %d bytes, without %q", c.objects, c.size, len(text), c.says)
		}
		if open, closed := strings.Count(text, "<details>"), strings.Count(text, "</details>"); open != closed {
			t.Errorf("%d objects of %d: %d details are opened and %d closed", c.objects, c.size, open, closed)
		}
	}
}
