package diagnose

import (
	"slices"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Finding is one thing that keeps an object from being as it should be.
type Finding struct {
	// Object is where it was found; its APIVersion is empty.
	Object controllers.Target
	// Code names the kind of trouble for programs, as in "source-authentication".
	Code string
	// Message says what is wrong, in a line.
	Message string
	// Details are what the cluster itself says: conditions, events, logs.
	Details []string
	// Remedies say what to do; one that has a command ends with it.
	Remedies []string
	// Cycle are the objects that wait for each other, nil for other findings.
	Cycle []controllers.Target
	// Since is when it began, zero where that is not known.
	Since time.Time
}

// Case is an object that is not as it should be, and why.
type Case struct {
	// Object is the one that was asked about.
	Object controllers.Target
	// Also are further objects that were asked about and have the same root.
	Also []controllers.Target
	// Root is the root cause.
	Root Finding
	// Chain leads from the object to the root, both included.
	Chain []Finding
	// Blocks are the objects that the root keeps from being ready, the root's
	// own object left out.
	Blocks []controllers.Target
}

// Verdict is what was found out.
type Verdict struct {
	// Cases are what is not as it should be, what blocks most first. It is
	// empty where all is well.
	Cases []Case
	// Looked is how many objects were looked at.
	Looked int
	// Problems is how many of them are not as they should be, controllers that do
	// not work included.
	Problems int
	// RootCauses is how many cases there are; Cases may have only the first.
	RootCauses int
	// Unknown says what could not be looked at, and why.
	Unknown []string
	// Progress is what is being reconciled since a moment ago: it is no failure,
	// and no success yet.
	Progress []Case
	// Facts are the revisions behind the object that was asked about, nil where
	// it does not come from a source.
	Facts *Facts
}

// caseOf returns the place of the case with that root, -1 where there is none.
func (v Verdict) caseOf(root Finding) int {
	return slices.IndexFunc(v.Cases, func(c Case) bool { return c.Root.Object == root.Object && c.Root.Code == root.Code })
}

// Of returns the case of an object that was asked about.
func (v Verdict) Of(t controllers.Target) (Case, bool) {
	for _, c := range v.Cases {
		if c.Object == key(t) || slices.Contains(c.Also, key(t)) {
			return c, true
		}
	}
	return Case{}, false
}

// key is a target as it is compared: whatever the version.
func key(t controllers.Target) controllers.Target {
	t.APIVersion = ""
	return t
}

func targetOf(k controllers.Kind, o controllers.Object) controllers.Target {
	return controllers.Target{Kind: k.Kind, Namespace: controllers.Namespace(o), Name: controllers.Name(o)}
}
