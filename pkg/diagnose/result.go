package diagnose

import (
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// Result is the result of a diagnosis.
type Result struct {
	// Causes lists the root causes, sorted by the number of blocked objects. It is empty if no problem was found.
	Causes []Cause
	// Checked is the number of diagnosed objects.
	Checked int
	// Problems is the number of objects with a problem, including controllers.
	Problems int
	// RootCauses is the total number of root causes. Causes may be truncated.
	RootCauses int
	// Unknown describes what could not be read, and why.
	Unknown []string
	// Uninstalled is set if the controllers' namespace contains no controllers.
	Uninstalled bool
	// Progress lists reconciliations that have just started and have neither failed nor succeeded.
	Progress []Cause
	// Facts holds the revisions of the requested object, or nil if it has no source.
	Facts *Facts
}

// Cause is the root cause of an object with a problem.
type Cause struct {
	// Object is the requested object. Also lists further requested objects with the same root cause.
	Object controllers.ID
	Also   []controllers.ID
	// Chain leads from the object to the root cause, both included.
	Chain []rules.Finding
	// Blocks lists the objects that wait for the object of the root cause.
	Blocks []controllers.ID
}

// Root returns the root cause.
func (c Cause) Root() *rules.Finding { return &c.Chain[len(c.Chain)-1] }

// causeOf returns the root cause of an object.
func causeOf(t controllers.ID, chain ...rules.Finding) Cause { return Cause{Object: t, Chain: chain} }

// single returns a finding as the root cause of its own object.
func single(f rules.Finding) Cause { return causeOf(f.Object, f) }

func (c Cause) isProgress(now time.Time) bool { return c.Root().IsProgress(now) }

// Of returns the root cause of a requested object.
func (r Result) Of(t controllers.ID) (Cause, bool) {
	for _, c := range r.Causes {
		if c.Object == t || slices.Contains(c.Also, t) {
			return c, true
		}
	}
	return Cause{}, false
}

// with returns the cause with a root, or nil.
func (r *Result) with(root rules.Finding) *Cause {
	i := slices.IndexFunc(r.Causes, func(c Cause) bool { return c.Root().Object == root.Object && c.Root().Code == root.Code })
	if i < 0 {
		return nil
	}
	return &r.Causes[i]
}

// limit sorts the causes by the number of blocked objects. It keeps the first n problems and the first n recent
// reconciliations, so that neither displaces the other. 0 keeps all.
func (r *Result) limit(n int, now time.Time) {
	slices.SortStableFunc(r.Causes, func(a, b Cause) int { return len(b.Blocks) - len(a.Blocks) })
	r.RootCauses = len(r.Causes)
	var problems, progress []Cause
	for _, c := range r.Causes {
		if c.isProgress(now) {
			progress = append(progress, c)
		} else {
			problems = append(problems, c)
		}
	}
	if n == 0 {
		n = len(r.Causes)
	}
	more := Result{Causes: progress[min(n, len(progress)):], RootCauses: r.RootCauses, Problems: r.Problems}
	more.separate(0, now)
	r.Progress, r.RootCauses, r.Problems = more.Progress, more.RootCauses, more.Problems
	r.Causes = slices.Concat(problems[:min(n, len(problems))], progress[:min(n, len(progress))])
}

// separate moves recent reconciliations and deletions, from an index on, to Progress and adjusts the counts.
func (r *Result) separate(from int, now time.Time) {
	kept := r.Causes[:from]
	for _, c := range r.Causes[from:] {
		if c.isProgress(now) {
			r.Progress = append(r.Progress, c)
			r.RootCauses, r.Problems = max(0, r.RootCauses-1), max(0, r.Problems-1-len(c.Blocks))
		} else {
			kept = append(kept, c)
		}
	}
	r.Causes = kept
}
