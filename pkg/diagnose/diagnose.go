// Package diagnose finds the root cause of what is not ready, and its remedies.
//
// Failures of Flux objects are classified by rules: by kind, by the reason of
// the condition, and by the typed error that package failure rebuilds from its
// message. A failure that no rule knows is reported as the controller says it.
//
// [Pod] and [Deployment] are pure: they read one object and return the cause.
// [Rollout] watches Deployments until they are ready and, when one does not
// become ready, collects what its pods, their logs and events say.
//
// A wait ends early where waiting does not help: an invalid image name, an
// image that does not exist or that the user may not pull, a missing Secret or
// ConfigMap of a container, a container with three restarts, a pod that
// admission rejects (PriorityClass, Pod Security, a webhook), and a Deployment
// past its progress deadline. What may pass is only reported: a registry that
// does not answer or limits the rate, the first restarts, an exceeded quota, an
// unschedulable pod.
package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// Cause is why a workload is not ready.
type Cause struct {
	// Message says what is wrong, in a line.
	Message string
	// Remedy is what to do, "" where nothing but waiting helps.
	Remedy string
	// Final says that waiting does not help.
	Final bool
	// Vague says that the cause is only how far the workload has come: a
	// workload that starts as it should passes through it.
	Vague bool
	// Log is the end of what the container that ended printed last.
	Log []string

	pod, container string
	// kind is what tells the cause from others where the message holds names
	// that change while it stays the same.
	kind string
	// rejection is why the API server rejects the pods, where it does.
	rejection failure.Failure
}

// Trouble is a workload that is not ready, and why.
type Trouble struct {
	Name string
	Cause
}

// NotReadyError says which workloads have not become ready, and why.
type NotReadyError struct {
	// Namespace is where the workloads are.
	Namespace string
	// Troubles has at least one entry.
	Troubles []Trouble
	// Err is what ended the wait where no final cause did: the end of the
	// context; nil otherwise.
	Err error
}

// Error has a line for each workload, with what its container printed last
// and the way out below it.
func (e *NotReadyError) Error() string {
	var b strings.Builder
	for i, t := range e.Troubles {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s is not ready: %s", t.Name, t.Message)
		for _, line := range t.Details() {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// Verdict has a case for each way out: several workloads that want the same are
// one case. Those whose containers have said something have one each.
func (e *NotReadyError) Verdict() Verdict {
	v := Verdict{Looked: len(e.Troubles)}
	for _, t := range e.Troubles {
		object := controllers.Target{Kind: "Deployment", Namespace: e.Namespace, Name: t.Name}
		same := func(c Case) bool {
			return t.Remedy != "" && len(t.Log) == 0 && slices.Equal(c.Root.Remedies, []string{t.Remedy})
		}
		if i := slices.IndexFunc(v.Cases, same); i >= 0 {
			v.Cases[i].Also = append(v.Cases[i].Also, object)
			continue
		}
		f := Finding{Object: object, Code: "controller-down", Message: t.Message, Details: t.logged()}
		f.Remedies = []string{cmp.Or(t.Remedy, fmt.Sprintf("kubectl -n %s describe pods -l app=%s", e.Namespace, t.Name))}
		v.Cases = append(v.Cases, single(f))
	}
	return v
}

// Unwrap returns what ended the wait.
func (e *NotReadyError) Unwrap() error { return e.Err }

// Details are the lines below the message: the end of the log, and the way out.
func (c Cause) Details() []string {
	lines := c.logged()
	if c.Remedy != "" {
		lines = append(lines, c.Remedy)
	}
	return lines
}

// logged are the lines of the log, marked as such.
func (c Cause) logged() []string {
	var lines []string
	for _, line := range c.Log {
		lines = append(lines, "| "+line)
	}
	return lines
}
