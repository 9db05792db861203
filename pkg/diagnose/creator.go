package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// creator returns the ResourceSet that creates a missing object when it becomes ready: an object with this kind and name is
// among its resources. It does not read spec.resourcesTemplate, which is one text, and ignores names that consist of
// expressions only, because they match any object.
func (e *evaluation) creator(t controllers.ID) (controllers.ID, bool) {
	if e.sets == nil {
		e.sets = []controllers.ID{}
		for id, o := range e.snapshot.Objects {
			if id.IsResourceSet() && !observe.KindOf(id).IsReady(o) {
				e.sets = append(e.sets, id)
			}
		}
		slices.SortFunc(e.sets, controllers.ID.Compare)
	}
	for _, id := range e.sets {
		resources, _, _ := unstructured.NestedSlice(e.snapshot.Objects[id], "spec", "resources")
		for _, resource := range resources {
			manifest, _ := resource.(map[string]any)
			r := controllers.IDOf(manifest)
			literal := strings.Trim(expression().ReplaceAllString(r.Name, ""), "-.") != ""
			if literal && r.Group == t.Group && r.Kind == t.Kind && renders(r.Name, t.Name) && (r.Namespace == "" || renders(r.Namespace, t.Namespace)) {
				return id, true
			}
		}
	}
	return controllers.ID{}, false
}

// expression matches an expression in a template of a ResourceSet.
var expression = lazy.Regexp(`<<.*?>>`)

// renders reports whether a template may render to a text. Expressions may render to any text.
func renders(template, text string) bool {
	literals := expression().Split(template, -1)
	for i := range literals {
		literals[i] = regexp.QuoteMeta(literals[i])
	}
	return regexp.MustCompile("^" + strings.Join(literals, ".*") + "$").MatchString(text)
}
