// Package diagnose says why something is not ready and what to do about it.
//
// [Pod] and [Deployment] are pure: they read one object and name the cause.
// [Rollout] watches Deployments until they are ready and, when one does not
// become so, puts together what its pods, their logs and events tell.
//
// What ends the wait before its time, because waiting does not mend it: an
// image name that is not valid, an image of which the registry says that it is
// not there or not for this user, a container whose Secret or ConfigMap is
// missing, one that has ended and been restarted three times, a pod that
// admission refuses (no such priority class, Pod Security, a webhook), and a
// Deployment past its own deadline. What may pass is only told: a registry
// that does not answer or limits the rate, the first restarts, a full quota,
// no node with room.
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
	// Remedy is the way out, "" where there is none but to wait.
	Remedy string
	// Final says that waiting alone does not mend it.
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
