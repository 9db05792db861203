package revision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// report collects what a comparison could not do, and passes on messages, each once.
type report struct {
	alert, tell func(text string)
	failed      []*BuildError
	warned      map[string]bool
	// omitted are the owners that could not be compared, in the order of omissions.
	omitted   map[controllers.VersionedID]*diff.Omission
	omissions []controllers.VersionedID
	// causes are the errors of owners that cannot be built.
	causes map[controllers.VersionedID]error
	// lacking are the ConfigMaps and Secrets without which owners were built.
	lacking map[controllers.ID][]Lack
	// concealed replaces what is derived from secret values in messages and names.
	concealed diff.Concealment
	// blocked are the objects that are not reconciled because of their dependencies.
	blocked []*diff.Result
}

func newReport(o Options) report {
	return report{alert: o.Warn, tell: o.Note, warned: map[string]bool{}, omitted: map[controllers.VersionedID]*diff.Omission{}, causes: map[controllers.VersionedID]error{}, lacking: map[controllers.ID][]Lack{}}
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
func (r *report) fail(s *side, owner *unstructured.Unstructured, err error) {
	err = r.concealed.Error(err)
	// A report names the owner before the reason.
	cause := strings.TrimPrefix(err.Error(), "building "+controllers.IDOf(owner.Object).String()+": ")
	r.omit(owner, "cannot be built: "+redact.Text(cause), true)
	r.causes[controllers.VersionedIDOf(owner.Object)] = err
	for _, known := range r.failed {
		if known.err.Error() == err.Error() {
			known.Revisions = append(known.Revisions, s.Name)
			return
		}
	}
	r.failed = append(r.failed, &BuildError{Revisions: []string{s.Name}, err: err})
}

// lack records that an owner is built without a ConfigMap or Secret.
func (r *report) lack(owner *unstructured.Unstructured, object controllers.ID, err error) {
	ref, lack := controllers.IDOf(owner.Object), Lack{object, err}
	if !slices.ContainsFunc(r.lacking[ref], func(known Lack) bool { return known.Object == object }) {
		r.lacking[ref] = append(r.lacking[ref], lack)
	}
}

// omit records that the objects of an owner could not be compared.
func (r *report) omit(owner *unstructured.Unstructured, reason string, affected bool) {
	ref := controllers.VersionedIDOf(owner.Object)
	if r.omitted[ref] == nil {
		r.omissions = append(r.omissions, ref)
		r.omitted[ref] = &diff.Omission{Reason: r.concealed.Text(reason), Affected: affected}
	}
}
