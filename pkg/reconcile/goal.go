package reconcile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// The states to wait for.
const (
	Ready     = "ready"
	Suspended = "suspended"
	Deleted   = "deleted"
)

// Goal is the state to wait for.
type Goal struct {
	// State is Ready, Suspended or Deleted.
	State string
	// UID identifies the object that must be deleted, "" for the object at the
	// start of the wait. An object with the same name and another UID is a new
	// one.
	UID string
	// Revision is the awaited revision, "" for any.
	Revision string
	// Attempt ends the wait for Ready with the first failed attempt at the
	// current spec, even if the controller retries.
	Attempt bool
	// Token is the reconciliation request of the attempt, "" for any attempt. A
	// status from before the request is ignored.
	Token string
	// RevisionSuffices accepts an object that is ready at Revision even if its controller has not
	// handled Token.
	RevisionSuffices bool
	// Earlier lists the revisions to ignore even if the controller has handled Token, because it may
	// have read an outdated source.
	Earlier []string
	// Answer ends the wait with the result of Token, even if the object waits for
	// another object and is reconciled again later.
	Answer bool
	// Temporary lists the Ready condition reasons that do not end the wait, such as ArtifactFailed
	// right after the source was created.
	Temporary []string
}

// String returns the goal as in "waiting until X is …".
func (g Goal) String() string {
	switch {
	case g.Revision != "":
		return g.State + " at " + g.Revision
	default:
		return g.State
	}
}

// Become returns the goal as in "waiting for X to …".
func (g Goal) Become() string {
	if g.State == Ready {
		return "become " + g.String()
	}
	return "be " + g.State
}

// Reached reports whether an object has reached the goal.
func (g Goal) Reached(k controllers.Kind, o controllers.Object) bool {
	switch g.State {
	case Suspended:
		return k.Suspension.Is(o)
	case Deleted:
		return g.UID != "" && uid(o) != g.UID
	}
	answered := (g.Token == "" || k.Settled(o, g.Token)) && !g.atEarlier(k, o)
	suffices := g.RevisionSuffices && g.Revision != ""
	switch {
	case !isReady(k, o):
		return false
	case suffices:
		return answered || g.revisionReached(k, o)
	default:
		return answered && g.revisionReached(k, o)
	}
}

// Failed returns the failure of the awaited attempt, nil if it has not failed.
func (g Goal) Failed(k controllers.Kind, o controllers.Object) *FinalError {
	ready := k.Ready(o)
	if !g.Attempt || ready.Status == "True" || slices.Contains(g.Temporary, ready.Reason) || !g.ended(k, o) || g.triedEarlier(k, o) {
		return nil
	}
	return &FinalError{Failed: true, Message: ready.Message}
}

// ended reports whether the controller has finished the awaited attempt.
func (g Goal) ended(k controllers.Kind, o controllers.Object) bool {
	switch {
	case g.Token == "":
		return k.Finished(o)
	case g.Answer:
		// helm-controller keeps Reconciling=True while a dependency is not ready.
		return k.Settled(o, g.Token) || !g.precedesRequest(o) && k.Ready(o).Reason == "DependencyNotReady"
	default:
		return k.Settled(o, g.Token) && !k.Pending(o)
	}
}

// precedesRequest reports whether the status is from before the request.
func (g Goal) precedesRequest(o controllers.Object) bool {
	return g.Token != "" && (controllers.Path{"status.lastHandledReconcileAt"}).String(o) != g.Token
}

// withReplaced returns the goal for a state of the object. A controller reports
// only the last request, so if another client has replaced Token before the
// controller handled it, the goal is the request that replaced it. requested is
// the state right after Token was set, to distinguish that request from earlier
// ones.
func (g Goal) withReplaced(requested, o controllers.Object) Goal {
	handledOf := controllers.Path{"status.lastHandledReconcileAt"}.String
	if g.Token == "" || requested == nil {
		return g
	}
	asked, _, _ := unstructured.NestedString(o, "metadata", "annotations", controllers.RequestAnnotation)
	if handled := handledOf(o); asked != "" && handled == asked && handled != handledOf(requested) {
		g.Token = asked
	}
	return g
}

func uid(o controllers.Object) string { return controllers.Path{"metadata.uid"}.String(o) }

// final returns an error if the object cannot reach the goal.
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

// tried reports whether a failure may be about the awaited revision.
func (g Goal) tried(k controllers.Kind, o controllers.Object) bool {
	if g.Revision == "" {
		return true
	}
	for _, attempt := range k.Attempts {
		if attempted := attempt.Path.String(o); attempted != "" {
			return RevisionMatches(attempted, g.Revision)
		}
	}
	return true
}

// isReady reports whether an object is ready at its current generation and not
// being deleted.
func isReady(k controllers.Kind, o controllers.Object) bool {
	return (controllers.Path{"metadata.deletionTimestamp"}).String(o) == "" && k.IsReady(o)
}

// stalled returns the message of the Stalled condition and whether it is True
// for the current generation.
func stalled(o controllers.Object) (string, bool) {
	c, ok := controllers.FindCondition(o, "Stalled")
	if !ok || c.Status != "True" {
		return "", false
	}
	generation, _ := strconv.ParseInt(controllers.Path{"metadata.generation"}.String(o), 10, 64)
	return c.Message, controllers.Observed(o) || c.ObservedGeneration >= generation && c.ObservedGeneration > 0
}

func (g Goal) atEarlier(k controllers.Kind, o controllers.Object) bool {
	path, ok := RevisionPath(k)
	return ok && slices.Contains(g.Earlier, path.String(o))
}

func (g Goal) triedEarlier(k controllers.Kind, o controllers.Object) bool {
	return slices.ContainsFunc(k.Attempts, func(a controllers.Attempt) bool { return slices.Contains(g.Earlier, a.Path.String(o)) })
}

func (g Goal) revisionReached(k controllers.Kind, o controllers.Object) bool {
	if g.Revision == "" {
		return true
	}
	path, ok := RevisionPath(k)
	return ok && RevisionMatches(path.String(o), g.Revision)
}

// Missed returns how an object differs from the goal, "" if its Ready condition
// describes it.
func (g Goal) Missed(k controllers.Kind, o controllers.Object) string {
	ready := k.Ready(o)
	switch {
	case g.State == Deleted && (controllers.Path{"metadata.deletionTimestamp"}).String(o) == "":
		return "its deletion was not requested"
	case g.State == Suspended:
		return "it was not suspended"
	case g.State == Deleted:
		return ""
	case ready.Status == "True" && !isReady(k, o):
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

// HasCause reports whether a missed goal has a cause on the cluster, unlike a
// deletion or suspension that was not requested.
func (g Goal) HasCause(k controllers.Kind, o controllers.Object) bool {
	switch g.State {
	case Deleted:
		return (controllers.Path{"metadata.deletionTimestamp"}).String(o) != ""
	case Suspended:
		return false
	default:
		return !k.Suspension.Is(o)
	}
}

// FinalError is returned for an object that cannot reach its goal.
type FinalError struct {
	// Suspended is set if the object is suspended, Stalled if its controller
	// stopped retrying, and Failed if the awaited attempt failed.
	Suspended, Stalled, Failed bool
	Message                    string
	// Source is the stalled or failed source, empty if the object itself
	// stalled or failed.
	Source controllers.ID
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

// RevisionPath returns the field with the revision of objects of a kind.
func RevisionPath(k controllers.Kind) (controllers.Path, bool) {
	for _, c := range k.Columns {
		if c.Header == "REVISION" {
			return c.Field, true
		}
	}
	return nil, false
}

// fewestDigits is the minimum length of an abbreviated commit.
const fewestDigits = 7

// RevisionMatches reports whether a revision such as main@sha1:6f9a1b2c… is the
// wanted one, which may omit the branch and the algorithm, and abbreviate the
// digest.
func RevisionMatches(have, want string) bool {
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
