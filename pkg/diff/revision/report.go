package revision

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/repository"
)

// report collects the failures and omissions of a comparison, and passes on each message once.
type report struct {
	alert, tell func(text string)
	failed      []*BuildError
	warned      map[string]bool
	// omitted holds the owners that could not be compared. omissions holds their order.
	omitted   map[controllers.VersionedID]*diff.Omission
	omissions []controllers.VersionedID
	// missedIn holds the namespaces of missing data.
	missedIn map[missingData][]string
	// concealed replaces names and text derived from secret values in messages.
	concealed diff.Concealment
	// blocked holds the objects that are not reconciled because of their dependencies.
	blocked []*diff.Result
}

func newReport(o Options) report {
	return report{
		alert: o.Warn, tell: o.Note, warned: map[string]bool{}, omitted: map[controllers.VersionedID]*diff.Omission{}, missedIn: map[missingData][]string{},
	}
}

// missingData is data without which owners are rendered.
type missingData struct{ what, object, reason string }

// warnMissing warns about the data without which owners were rendered. A component may refer to the same data in many
// namespaces.
func (r *report) warnMissing() {
	for _, l := range slices.SortedFunc(maps.Keys(r.missedIn), func(a, b missingData) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.object, b.object), cmp.Compare(a.reason, b.reason))
	}) {
		kind, name, _ := strings.Cut(l.object, "/")
		switch namespaces := slices.Sorted(slices.Values(r.missedIn[l])); {
		case len(namespaces) > 1:
			r.warn("%s of %s %s in namespaces %s omitted: %s", l.what, kind, name, budget.List(namespaces, budget.Directories), l.reason)
		default:
			r.warn("%s of %s/%s/%s omitted: %s", l.what, kind, namespaces[0], name, l.reason)
		}
	}
}

// note reports an assumption.
func (r *report) note(format string, args ...any) { r.once(r.tell, fmt.Sprintf(format, args...)) }

// warn reports an omission.
func (r *report) warn(format string, args ...any) { r.once(r.alert, fmt.Sprintf(format, args...)) }

func (r *report) once(to func(text string), text string) {
	text = r.concealed.Text(text)
	if to != nil && !r.warned[text] {
		to(text)
	}
	r.warned[text] = true
}

// fail records that an owner cannot be built. Its objects are not compared.
func (r *report) fail(g *repository.Graph, owner *unstructured.Unstructured, err error) {
	err = r.concealed.Error(err)
	r.omit(owner, repository.CannotBuild(owner, err), true)
	for _, known := range r.failed {
		if known.err.Error() == err.Error() {
			known.Revisions = append(known.Revisions, g.Name)
			return
		}
	}
	r.failed = append(r.failed, &BuildError{Revisions: []string{g.Name}, err: err})
}

// omit records that the objects of an owner could not be compared.
func (r *report) omit(owner *unstructured.Unstructured, reason string, affected bool) {
	ref := controllers.VersionedIDOf(owner.Object)
	if r.omitted[ref] == nil {
		r.omissions = append(r.omissions, ref)
		r.omitted[ref] = &diff.Omission{Reason: r.concealed.Text(reason), Affected: affected}
	}
}

// err returns why the comparison cannot be continued, or nil.
func (w *walker) err() error {
	return cmp.Or(context.Cause(w.ctx), w.graphs.Base.Err(), w.graphs.Head.Err())
}
