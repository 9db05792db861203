package diagnose

import (
	"context"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// view is what somebody may see of the objects of Flux.
type view struct {
	// refused are the errors of kinds that may not be listed at all, narrowed
	// those of kinds that may be listed in one namespace only.
	refused, narrowed map[string]error
	namespace         string
}

// visible lists the objects of Flux: of all namespaces and, of the kinds where
// that is forbidden, of the given one, which is all that tenants mostly may see.
func (d Doctor) visible(ctx context.Context, namespace string) ([]controllers.Object, view, error) {
	v := view{namespace: namespace, narrowed: map[string]error{}}
	objects, refused, err := d.Client.Fleet(ctx, kube.Selection{})
	v.refused = refused
	if err != nil || len(refused) == 0 || namespace == "" {
		return objects, v, err
	}
	own, refusedThere, err := d.Client.Fleet(ctx, kube.Selection{Namespace: namespace})
	if err != nil {
		return nil, v, err
	}
	for _, o := range own {
		if refused[controllers.Path{"kind"}.String(o)] != nil {
			objects = append(objects, o)
		}
	}
	for kind, err := range refused {
		if refusedThere[kind] == nil {
			v.narrowed[kind] = err
			delete(v.refused, kind)
		}
	}
	return objects, v, nil
}

// hidden is why nobody can tell whether an object that was not listed is there,
// nil where it is not.
func (v view) hidden(t controllers.Target) error {
	if t.Namespace != v.namespace && v.narrowed[t.Kind] != nil {
		return v.narrowed[t.Kind]
	}
	return v.refused[t.Kind]
}

// blind names what may not be seen, in a line each for what nobody may list
// and for what is seen of one namespace only.
func (v view) blind() []string {
	var lines []string
	if len(v.narrowed) > 0 {
		lines = append(lines, "you may list only in namespace "+v.namespace+": "+strings.Join(sortedKeys(v.narrowed), ", "))
	}
	if len(v.refused) > 0 {
		lines = append(lines, "you may not list: "+strings.Join(sortedKeys(v.refused), ", "))
	}
	return lines
}
