package diagnose

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
func (d Doctor) visible(ctx context.Context, namespace string, bearable func(error) bool) ([]controllers.Object, view, error) {
	v := view{namespace: namespace, narrowed: map[string]error{}}
	objects, refused, err := d.Client.Fleet(ctx, kube.Selection{}, bearable)
	v.refused = refused
	if err != nil || namespace == "" || !forbidden(refused) {
		return objects, v, err
	}
	own, refusedThere, err := d.Client.Fleet(ctx, kube.Selection{Namespace: namespace}, bearable)
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

func forbidden(refused map[string]error) bool {
	for _, err := range refused {
		if apierrors.IsForbidden(err) {
			return true
		}
	}
	return false
}

// hidden is why nobody can tell whether an object that was not listed is there,
// nil where it is not.
func (v view) hidden(t controllers.Target) error {
	if t.Namespace != v.namespace && v.narrowed[t.Kind] != nil {
		return v.narrowed[t.Kind]
	}
	return v.refused[t.Kind]
}

// blind names what is not seen, in a line each for kinds that are seen of one
// namespace only and for every reason for which kinds are not seen at all.
func (v view) blind() []string {
	why := map[string]string{}
	for kind, err := range v.refused {
		if !apierrors.IsForbidden(err) {
			why[kind] = unseen(err)
		}
	}
	return append(v.barred(), grouped(why)...)
}

// barred are the lines of blind that tell of permissions alone.
func (v view) barred() []string {
	why := map[string]string{}
	for kind := range v.narrowed {
		why[kind] = "you may list only in namespace " + v.namespace
	}
	lines := grouped(why)
	why = map[string]string{}
	for kind, err := range v.refused {
		if apierrors.IsForbidden(err) {
			why[kind] = unseen(err)
		}
	}
	return append(lines, grouped(why)...)
}

// grouped has a line for each reason, with its kinds.
func grouped(why map[string]string) []string {
	kinds := map[string][]string{}
	for _, kind := range sortedKeys(why) {
		kinds[why[kind]] = append(kinds[why[kind]], kind)
	}
	var lines []string
	for _, reason := range sortedKeys(kinds) {
		if len(kinds[reason]) == len(controllers.Kinds) {
			kinds[reason] = []string{"any kind of Flux"}
		}
		lines = append(lines, reason+": "+strings.Join(kinds[reason], ", "))
	}
	return lines
}

// unseen says why something could not be looked at, as in "… : what".
func unseen(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "you may not list"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time about"
	default:
		return "the cluster does not answer (" + oneLine(err.Error()) + ") about"
	}
}
