package diagnose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// view describes which Flux objects were read, and which could not be.
type view struct {
	// listed reports whether the objects of namespace were listed, where "" means all namespaces.
	// Other objects are read one by one if they are referenced.
	listed    bool
	namespace string
	// refused holds the errors of kinds that could not be listed. narrowed holds the errors of
	// kinds that could be listed only in one namespace.
	refused, narrowed map[string]error
	// within is that namespace.
	within string
	// absent holds the requested objects that do not exist. unread holds the errors of objects that
	// could not be read.
	absent map[controllers.ID]bool
	unread map[controllers.ID]error
}

// errNotAsked is returned for an object that was not requested.
var errNotAsked = errors.New("it was not read")

// list lists the Flux objects in a namespace, or in all for "". Kinds that may
// not be listed in all namespaces are listed in the fallback namespace, as is
// common for tenants.
func (d Doctor) list(ctx context.Context, namespace, fallback string, bearable func(error) bool, well *store) ([]controllers.Object, view, error) {
	v := view{listed: true, namespace: namespace, within: fallback, narrowed: map[string]error{}}
	objects, refused, err := d.Client.ListAll(ctx, kube.Selection{Namespace: namespace, Without: unwanted}, bearable, well.keep)
	v.refused = refused
	if err != nil || namespace != "" || fallback == "" || !forbidden(refused) {
		return objects, v, err
	}
	own, refusedThere, err := d.Client.ListAll(ctx, kube.Selection{Namespace: fallback, Without: unwanted}, bearable, reduced)
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

// covers reports whether a list would contain the object if it existed.
func (v view) covers(t controllers.ID) bool {
	switch {
	case !v.listed, v.namespace != "" && t.Namespace != v.namespace:
		return false
	case v.narrowed[t.Kind] != nil:
		return t.Namespace == v.within
	default:
		return v.refused[t.Kind] == nil
	}
}

// hidden returns the reason why the existence of an object is unknown, or nil if the object does
// not exist.
func (v view) hidden(t controllers.ID) error {
	switch {
	case v.covers(t), v.absent[t]:
		return nil
	case v.unread[t] != nil:
		return v.unread[t]
	case v.narrowed[t.Kind] != nil:
		return v.narrowed[t.Kind]
	case v.refused[t.Kind] != nil:
		return v.refused[t.Kind]
	}
	return errNotAsked
}

// unreadShown is the maximum number of unread objects to name.
const unreadShown = 8

// gaps describes what could not be read: a line for kinds that were read only
// in one namespace, and a line for each reason.
func (v view) gaps() []string {
	why := map[string]string{}
	for kind := range v.narrowed {
		why[kind] = fmt.Sprintf("no permission to list outside namespace %q", v.within)
	}
	lines := grouped(why)
	why = map[string]string{}
	for kind, err := range v.refused {
		why[kind] = unseen(err)
	}
	lines = append(lines, grouped(why)...)
	return append(lines, v.unreadable()...)
}

// unreadable returns a line for each object that could not be read.
func (v view) unreadable() []string {
	var lines []string
	byName := func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) }
	targets := slices.SortedFunc(maps.Keys(v.unread), byName)
	for _, t := range targets[:min(len(targets), unreadShown)] {
		lines = append(lines, unseen(v.unread[t])+": "+t.String())
	}
	if more := len(targets) - unreadShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more objects", more))
	}
	return lines
}

// grouped returns a line for each reason, with its kinds.
func grouped(why map[string]string) []string {
	kinds := map[string][]string{}
	for _, kind := range sortedKeys(why) {
		kinds[why[kind]] = append(kinds[why[kind]], kind)
	}
	var lines []string
	for _, reason := range sortedKeys(kinds) {
		if len(kinds[reason]) == len(controllers.Kinds) {
			kinds[reason] = []string{"all Flux resources"}
		}
		lines = append(lines, reason+": "+strings.Join(kinds[reason], ", "))
	}
	return lines
}

// Unread describes a part that could not be read, and why.
func Unread(what string, err error) string { return unseen(err) + ": " + what }

// unseen returns the reason why a request failed, as a prefix for the object.
func unseen(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "no permission to read"
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out reading"
	default:
		return "request failed (" + oneLine(err.Error()) + ")"
	}
}
