package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The states that wait waits for.
const (
	stateReady     = "ready"
	stateSuspended = "suspended"
	stateDeleted   = "deleted"
)

// goal is what is waited for of an object.
type goal struct{ state, revision string }

// String says it as in "waiting until X is …".
func (g goal) String() string {
	switch {
	case g.state == stateDeleted:
		return "gone"
	case g.revision != "":
		return g.state + " at " + g.revision
	default:
		return g.state
	}
}

// reached tells whether an object is as it is wanted. One that is not, and
// will not become so by waiting, is an error.
func (g goal) reached(t target, o controllers.Object) (bool, error) {
	if g.state == stateSuspended {
		return t.kind.Suspension.Is(o), nil
	}
	if g.state == stateDeleted {
		return false, nil
	}
	if isReady(t.kind, o) && g.revisionReached(t.kind, o) {
		return true, nil
	}
	if message, stalled := stalled(o); stalled {
		return false, &finalError{reason: "is stalled: " + orElse(message, condition(t.kind, o))}
	}
	if t.kind.Suspension.Is(o) {
		return false, &finalError{
			reason: fmt.Sprintf("is suspended%s; its last state: %s", noted(o), condition(t.kind, o)),
			hint:   fmt.Sprintf("flux resume %s %s -n %s", t.kind.Noun(), t.name, t.namespace),
		}
	}
	return false, nil
}

// isReady asks more than the Ready condition, which speaks of an earlier spec
// until the controller has seen the present one.
func isReady(k controllers.Kind, o controllers.Object) bool {
	if (controllers.Path{"metadata.deletionTimestamp"}).String(o) != "" || k.Ready(o).Status != "True" {
		return false
	}
	return k.Static != nil && k.Static(o) || controllers.Observed(o)
}

// stalled tells whether the controller has given the present spec up, and not
// an earlier one.
func stalled(o controllers.Object) (string, bool) {
	c, ok := controllers.FindCondition(o, "Stalled")
	if !ok || c.Status != "True" {
		return "", false
	}
	generation, _ := strconv.ParseInt(controllers.Path{"metadata.generation"}.String(o), 10, 64)
	return c.Message, controllers.Observed(o) || c.ObservedGeneration >= generation && c.ObservedGeneration > 0
}

func (g goal) revisionReached(k controllers.Kind, o controllers.Object) bool {
	if g.revision == "" {
		return true
	}
	path, ok := revisionPath(k)
	return ok && revisionMatches(path.String(o), g.revision)
}

// missed says how an object falls short of the goal when the time is over.
func (g goal) missed(t target, o controllers.Object) string {
	ready := t.kind.Ready(o)
	switch {
	case g.state == stateDeleted && (controllers.Path{"metadata.deletionTimestamp"}).String(o) == "":
		return "nobody has deleted it"
	case g.state == stateDeleted:
		return "its deletion waits for " + finalizers(o)
	case g.state == stateSuspended:
		return "nobody has suspended it"
	case ready.Status == "True" && !isReady(t.kind, o):
		return "its controller has not seen its present spec"
	case ready.Status == "True":
		path, _ := revisionPath(t.kind)
		return fmt.Sprintf("it is ready at %s", orElse(path.String(o), "no revision"))
	default:
		return condition(t.kind, o)
	}
}

// explicable tells whether an object that falls short of the goal has a cause
// that can be looked for, and not only nobody who did what was waited for.
func (g goal) explicable(t target, o controllers.Object) bool {
	switch g.state {
	case stateDeleted:
		return (controllers.Path{"metadata.deletionTimestamp"}).String(o) != ""
	case stateSuspended:
		return false
	default:
		return !t.kind.Suspension.Is(o)
	}
}

// finalError says that an object will not come to its goal by waiting.
type finalError struct{ reason, hint string }

func (e *finalError) Error() string { return e.reason }

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// revisionPath is where objects of a kind say at which revision they are.
func revisionPath(k controllers.Kind) (controllers.Path, bool) {
	for _, c := range k.Columns {
		if c.Header == "REVISION" {
			return c.Field, true
		}
	}
	return nil, false
}

// fewestDigits is how many digits of a commit name it.
const fewestDigits = 7

// revisionMatches tells whether a revision such as main@sha1:6f9a1b2c… is the
// wanted one, which may leave the branch and the algorithm out and be cut
// short after the seventh digit.
func revisionMatches(have, want string) bool {
	if have == want {
		return true
	}
	digits := want[strings.LastIndexAny(want, "@:")+1:]
	if len(digits) < fewestDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return false
	}
	_, digest, _ := strings.Cut(have, "@")
	_, hex, _ := strings.Cut(orElse(digest, have), ":")
	for _, form := range []string{have, digest, hex} {
		if strings.HasPrefix(form, want) {
			return true
		}
	}
	return false
}
