package rules

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// Subject is a Flux object with its status, as rules read it.
type Subject struct {
	Kind   controllers.Kind
	Object controllers.Object
	// Ready is the status of the object. It reports the failed attempt while its controller repeats it: Repeating is then true, and
	// Attempting the message about a Helm action, which can take minutes.
	Ready      controllers.Readiness
	Repeating  bool
	Attempting string
	// Home is the namespace of the controllers.
	Home string
	// Live holds the current state that the failure concerns.
	Live Live

	// failed is the condition with the failure. failure is its parsed message.
	failed  controllers.Readiness
	failure failure.Failure
}

// Live holds observations about a failure. It is empty until it is read: requests are sent for root causes only.
type Live struct {
	// File is the path of the rejected object in the artifact of the source.
	File string
	// Providers lists the objects that apply CRDs of a group that is not served.
	Providers []string
	// Unapplied lists the HelmReleases in the directory of a Kustomization that do not exist.
	Unapplied []string
	// Served lists the served versions of the kind.
	Served []string
	// NoAccount is set if the ServiceAccount without the permission does not exist.
	NoAccount bool
	// Ignored is the ignore rule that excludes the path from the artifact of the source, or "".
	Ignored string
	// Healthy holds the objects of a failed health check that are ready now.
	Healthy []failure.Object
}

// NewSubject returns the subject of an object. A source or release that repeats a failed attempt has failed.
func NewSubject(k controllers.Kind, o controllers.Object, home string) Subject {
	s := Subject{Kind: k, Object: o, Ready: Readiness(k, o), Home: home}
	s.repeat()
	return s
}

// Readiness returns the readiness of an object without the temporary directories of its controller.
func Readiness(k controllers.Kind, o controllers.Object) controllers.Readiness {
	ready := k.Ready(o)
	if ready.Status != "True" {
		ready.Message = failure.WithoutTempDirs(ready.Message)
	}
	return ready
}

// runningAction begins the message of helm-controller while it runs an action.
const runningAction = "Running '"

// repeat sets the failure of the last attempt while its controller repeats it. source-controller keeps the condition with the
// failure. helm-controller clears the number of failures before it runs an action, unless the generation, the chart and the values
// are those of the last attempt.
func (s *Subject) repeat() {
	if failed, ok := s.fetchFailure(); ok && s.Ready.Status == "Unknown" {
		s.Ready, s.Repeating = failed, true
		return
	}
	doing, _ := controllers.FindCondition(s.Object, "Reconciling")
	failures := s.Text("status.failures")
	if s.Ready.Status != "Unknown" || !strings.HasPrefix(doing.Message, runningAction) || failures == "" || failures == "0" ||
		s.Text("status.lastAttemptedGeneration") != s.Text("metadata.generation") {
		return
	}
	if failed, ok := s.attempted(); ok {
		s.Ready, s.Repeating, s.Attempting = failed, true, doing.Message
	}
}

// fetchFailure returns the failure of the last fetch of the current spec.
func (s Subject) fetchFailure() (failed controllers.Readiness, ok bool) {
	for _, typ := range []string{"FetchFailed", "BuildFailed", "StorageOperationFailed"} {
		c, found := controllers.FindCondition(s.Object, typ)
		if found && c.Status == "True" && strconv.FormatInt(c.ObservedGeneration, 10) == s.Text("metadata.generation") {
			return controllers.Readiness{Status: "False", Reason: c.Reason, Message: failure.WithoutTempDirs(c.Message)}, true
		}
	}
	return controllers.Readiness{}, false
}

// attempted returns the condition that reports a failed action.
func (s Subject) attempted() (failed controllers.Readiness, ok bool) {
	for _, name := range s.Kind.Attempted {
		if c, ok := controllers.FindCondition(s.Object, name); ok && c.Status == "False" && c.Message != "" {
			return controllers.Readiness{Status: c.Status, Reason: c.Reason, Message: failure.WithoutTempDirs(c.Message)}, true
		}
	}
	return controllers.Readiness{}, false
}

// Failed returns the condition with the failure: Ready, unless that reports the remediation of an earlier failure.
func (s Subject) Failed() controllers.Readiness {
	remediated, is := controllers.FindCondition(s.Object, "Remediated")
	if !controllers.RetriesExhausted(s.Object) && (!is || remediated.Reason != s.Ready.Reason) {
		return s.Ready
	}
	if failed, ok := s.attempted(); ok {
		return failed
	}
	return s.Ready
}

// Failure returns the parsed message of the failed condition.
func (s Subject) Failure() failure.Failure { return failure.Parse(s.Failed().Message) }

func (s Subject) parsed() Subject {
	s.failed, s.failure = s.Failed(), s.Failure()
	return s
}

// FailedAt returns the time of the failed action, or zero if it is unknown.
func (s Subject) FailedAt() time.Time {
	for _, typ := range s.Kind.Attempted {
		if c, ok := controllers.FindCondition(s.Object, typ); ok && c.Status == "False" {
			return Moment(c.LastTransitionTime)
		}
	}
	return time.Time{}
}

// ReleaseNamespace returns the namespace of the objects of a release.
func (s Subject) ReleaseNamespace() string {
	return cmp.Or(s.Text("status.history[0].namespace"), s.Text("spec.targetNamespace"), s.namespace())
}

// FailedTests returns the failed test hooks of the newest tested revision of a release.
func (s Subject) FailedTests() []string {
	list, _ := controllers.Path{"status.history"}.Lookup(s.Object)
	entries, _ := list.([]any)
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		hooks, _ := m["testHooks"].(map[string]any)
		var names []string
		for name, hook := range hooks {
			if fields, _ := hook.(map[string]any); (controllers.Path{"phase"}).String(fields) != "Succeeded" {
				names = append(names, name)
			}
		}
		if len(hooks) > 0 {
			slices.Sort(names)
			return names
		}
	}
	return nil
}

// Searched returns the source that defines the object of the failure, and false if the failure does not concern an object of a
// source.
func (s Subject) Searched() (controllers.ID, bool) {
	sources := s.Kind.SourceOf(s.Object)
	if len(sources) != 1 || s.Failure().In(failure.Install, failure.Upgrade) {
		return controllers.ID{}, false
	}
	return sources[0], true
}

// ID returns the ID of the object.
func (s Subject) ID() controllers.ID { return s.Kind.IDOf(s.Object) }

func (s Subject) String() string { return s.ID().String() }

func (s Subject) namespace() string { return controllers.Namespace(s.Object) }

// Text returns a field of the object.
func (s Subject) Text(field string) string { return controllers.Path{field}.String(s.Object) }

// Command returns a flux command for the object.
func (s Subject) Command(verb string, flags ...string) string {
	command := hint.Command("flux "+verb+" "+s.Kind.Noun()+" %s -n %s", controllers.Name(s.Object), s.namespace())
	return strings.Join(append([]string{command}, flags...), " ")
}

// Again returns the command that reconciles the object after the fix.
func (s Subject) Again() string {
	if s.Kind.HasUpstream() {
		return s.Command("reconcile", "--with-source")
	}
	return s.Command("reconcile")
}

// Moment parses a time. It returns zero if the time is missing.
func Moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
