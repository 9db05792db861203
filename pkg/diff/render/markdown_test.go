package render_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// created returns the result of a Kustomization that creates objects of the given size.
func created(objects, size int) []*diff.Result {
	r := &diff.Result{Owner: controllers.VersionedID{ID: controllers.ID{Kind: "Kustomization", Namespace: "flux-system", Name: "app"}}}
	for i := range objects {
		name := fmt.Sprintf("object-%d", i)
		r.Changes = append(r.Changes, diff.Change{
			Object: controllers.VersionedID{ID: controllers.ID{Kind: "ConfigMap", Namespace: "default", Name: name}, Version: "v1"}, Action: diff.Created,
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
		{3, 100_000, "… lines omitted: "},
		{20, 100_000, "changes are omitted"},
		{4_000, 1, "changes are omitted"},
	} {
		b := render.Markdown(created(c.objects, c.size), render.CommentMax)
		text := b
		if len(text) > render.CommentMax || !strings.Contains(text, c.says) {
			t.Errorf("%d objects of %d: %d bytes, without %q", c.objects, c.size, len(text), c.says)
		}
		if open, closed := strings.Count(text, "<details>"), strings.Count(text, "</details>"); open != closed {
			t.Errorf("%d objects of %d: %d details are opened and %d closed", c.objects, c.size, open, closed)
		}
	}
}

// TestCommentImages requires that comments name the images that a registry does not have or could not
// be asked for, and only these.
func TestCommentImages(t *testing.T) {
	t.Parallel()
	results := created(1, 1)
	for name, state := range map[string]diff.ImageState{"found": diff.ImageFound, "missing": diff.ImageMissing, "unknown": diff.ImageUnknown} {
		results[0].Changes[0].Images = append(results[0].Changes[0].Images, diff.Image{After: name, Registry: &diff.ImageCheck{State: state, Reason: "why " + name}})
	}
	for name, write := range map[string]func([]*diff.Result, int) string{"Markdown": render.Markdown, "Plain": render.Plain} {
		b := write(results, 0)
		for text, want := range map[string]bool{
			"uses the image missing: why missing":                              true,
			"uses the image unknown, which could not be verified: why unknown": true,
			"found": false,
		} {
			if strings.Contains(b, text) != want {
				t.Errorf("%s: names %q is %v, want %v:\n%s", name, text, !want, want, b)
			}
		}
	}
}
