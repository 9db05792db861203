package reconcile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The states that can be waited for.
const (
	Ready     = "ready"
	Suspended = "suspended"
	Deleted   = "deleted"
)

// Goal is the state that an object is to reach.
type Goal struct {
	// State is Ready, Suspended or Deleted.
	State string
	// Revision is the one to be ready at, "" for any.
	Revision string
	// Attempt ends the wait for Ready with the first attempt at the present spec
	// that fails, also where the controller retries.
	Attempt bool
	// Token is the request that the attempt has to answer, "" for any attempt.
	Token string
}

// String is the goal as in "waiting until X is …".
func (g Goal) String() string {
	switch {
	case g.State == Deleted:
		return "gone"
	case g.Revision != "":
		return g.State + " at " + g.Revision
	default:
		return g.State
	}
}

// Become is the goal as in "waiting for X to …".
func (g Goal) Become() string {
	if g.State == Ready {
		return "become " + g.String()
	}
	return "be " + g.State
}

// Reached reports whether an object is as it is to be.
func (g Goal) Reached(k controllers.Kind, o controllers.Object) bool {
	switch g.State {
	case Suspended:
		return k.Suspension.Is(o)
	case Deleted:
		return false
	default:
		return IsReady(k, o) && g.revisionReached(k, o) && (g.Token == "" || k.Settled(o, g.Token))
	}
}

// failed returns the failure of the attempt that is waited for, nil where there
// is none yet.
func (g Goal) failed(k controllers.Kind, o controllers.Object) *FinalError {
	if !g.Attempt || k.Pending(o) {
		return nil
	}
	ended := k.Finished(o)
	if g.Token != "" {
		ended = k.Settled(o, g.Token)
	}
	if ready := k.Ready(o); ended && ready.Status != "True" {
		return &FinalError{Failed: true, Message: ready.Message}
	}
	return nil
}

// final returns why waiting longer is of no use, nil where it may be of use.
func (g Goal) final(k controllers.Kind, o controllers.Object) *FinalError {
	if g.State != Ready {
		return nil
	}
	if message, ok := stalled(o); ok && g.tried(k, o) {
		return &FinalError{Stalled: true, Message: message}
	}
	if k.Suspension.Is(o) {
		return &FinalError{Suspended: true}
	}
	return nil
}

// tried reports whether a failure may be one of the revision that is waited for.
func (g Goal) tried(k controllers.Kind, o controllers.Object) bool {
	if g.Revision == "" {
		return true
	}
	for _, attempt := range k.Attempts {
		if attempted := attempt.Path.String(o); attempted != "" {
			return revisionMatches(attempted, g.Revision)
		}
	}
	return true
}

// IsReady reports whether an object is ready with its present spec. The Ready
// condition alone may be one of an earlier spec.
func IsReady(k controllers.Kind, o controllers.Object) bool {
	if (controllers.Path{"metadata.deletionTimestamp"}).String(o) != "" || k.Ready(o).Status != "True" {
		return false
	}
	return k.Static != nil && k.Static(o) || controllers.Observed(o)
}

// stalled reports whether the controller has given up the present spec, and
// not an earlier one.
func stalled(o controllers.Object) (string, bool) {
	c, ok := controllers.FindCondition(o, "Stalled")
	if !ok || c.Status != "True" {
		return "", false
	}
	generation, _ := strconv.ParseInt(controllers.Path{"metadata.generation"}.String(o), 10, 64)
	return c.Message, controllers.Observed(o) || c.ObservedGeneration >= generation && c.ObservedGeneration > 0
}

func (g Goal) revisionReached(k controllers.Kind, o controllers.Object) bool {
	if g.Revision == "" {
		return true
	}
	path, ok := RevisionPath(k)
	return ok && revisionMatches(path.String(o), g.Revision)
}

// Missed is how an object falls short of the goal, "" where its Ready
// condition says it.
func (g Goal) Missed(k controllers.Kind, o controllers.Object) string {
	ready := k.Ready(o)
	switch {
	case g.State == Deleted && (controllers.Path{"metadata.deletionTimestamp"}).String(o) == "":
		return "nobody has deleted it"
	case g.State == Suspended:
		return "nobody has suspended it"
	case g.State == Deleted:
		return ""
	case ready.Status == "True" && !IsReady(k, o):
		return "its controller has not observed the latest spec"
	case ready.Status == "True":
		path, _ := RevisionPath(k)
		if revision := path.String(o); revision != "" {
			return "it is ready at " + revision
		}
		return "it is ready without a revision"
	default:
		return ""
	}
}

// Explicable reports whether there is a cause to be looked for when an object
// falls short of the goal, and not only nobody who did what was waited for.
func (g Goal) Explicable(k controllers.Kind, o controllers.Object) bool {
	switch g.State {
	case Deleted:
		return (controllers.Path{"metadata.deletionTimestamp"}).String(o) != ""
	case Suspended:
		return false
	default:
		return !k.Suspension.Is(o)
	}
}

// FinalError is returned for an object that does not reach its goal however
// long it is waited for.
type FinalError struct {
	// Suspended is set where nobody reconciles the object, Stalled where its
	// controller has given up, and Failed where the awaited attempt has failed.
	Suspended, Stalled, Failed bool
	Message                    string
	// Source is the source that is stalled or has failed, empty where the object
	// itself has.
	Source controllers.Target
}

func (e *FinalError) Error() string {
	if e.Suspended {
		return "is suspended"
	}
	if e.Failed {
		return fmt.Sprintf("is not ready: %s", e.Message)
	}
	return fmt.Sprintf("is stalled: %s", e.Message)
}

// RevisionPath returns where objects of a kind have the revision that they are at.
func RevisionPath(k controllers.Kind) (controllers.Path, bool) {
	for _, c := range k.Columns {
		if c.Header == "REVISION" {
			return c.Field, true
		}
	}
	return nil, false
}

// fewestDigits is how many digits of a commit name it.
const fewestDigits = 7

// revisionMatches reports whether a revision such as main@sha1:6f9a1b2c… is the
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
	if digest == "" {
		digest = have
	}
	_, hex, _ := strings.Cut(digest, ":")
	for _, form := range []string{have, digest, hex} {
		if strings.HasPrefix(form, want) {
			return true
		}
	}
	return false
}
