package diagnose

import (
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Finding is a problem of an object.
type Finding struct {
	// Object is the object with the problem.
	Object controllers.ID
	// Code identifies the type of problem, such as "source-authentication".
	Code string
	// Message describes the problem in one line.
	Message string
	// Details holds quoted conditions, events and logs.
	Details []string
	// Remedies lists fixes. A remedy with a command ends with the command.
	Remedies []string
	// Cycle lists the objects of a circular dependency.
	Cycle []controllers.ID
	// Since is the start of the problem, or zero if it is unknown.
	Since time.Time
}

// Case is an object with a problem and its root cause.
type Case struct {
	// Object is the requested object.
	Object controllers.ID
	// Also lists further requested objects with the same root cause.
	Also []controllers.ID
	// Root is the root cause.
	Root Finding
	// Chain leads from the object to the root, both included.
	Chain []Finding
	// Blocks lists the objects that wait for the object of the root.
	Blocks []controllers.ID
}

// Verdict is the result of a diagnosis.
type Verdict struct {
	// Cases lists the problems, sorted by the number of blocked objects. It is empty if no problem
	// was found.
	Cases []Case
	// Looked is the number of diagnosed objects.
	Looked int
	// Problems is the number of objects with a problem, including controllers.
	Problems int
	// RootCauses is the total number of cases. Cases may be truncated.
	RootCauses int
	// Unknown describes what could not be read, and why.
	Unknown []string
	// Progress lists reconciliations that have just started and have neither failed nor succeeded.
	Progress []Case
	// Facts holds the revisions of the requested object, or nil if it has no source.
	Facts *Facts
}

// caseOf returns the index of the case with the root, or -1.
func (v Verdict) caseOf(root Finding) int {
	return slices.IndexFunc(v.Cases, func(c Case) bool { return c.Root.Object == root.Object && c.Root.Code == root.Code })
}

// Of returns the case of a requested object.
func (v Verdict) Of(t controllers.ID) (Case, bool) {
	for _, c := range v.Cases {
		if c.Object == t || slices.Contains(c.Also, t) {
			return c, true
		}
	}
	return Case{}, false
}
