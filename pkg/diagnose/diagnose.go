// Package diagnose finds the root cause of objects that are not ready, and
// remedies.
//
// Failures of Flux objects are classified by rules: by kind, by the reason of
// the condition, and by the typed error that package failure parses from the
// message. A failure without a matching rule is reported with the message of
// the controller.
//
// A diagnosis has parts that read different things, each of them once:
//
//   - reader: Flux objects, one by one along their references, at most 16
//     requests at a time, or with one list of a kind
//   - installation: the Deployments of the controllers, and their leases
//   - dependents: one list for each kind that may wait for a root cause
//   - history: events of an object, or of one reason in a namespace
//   - workloads: pods by namespace, logs by container
//   - contents: archives of sources, the release storage of Helm
//   - verifier: metadata of the objects in an inventory, one list for each kind
//
// The snapshot holds the objects that were read; judge derives findings from it
// without requests. The examiner adds details to root causes in parallel,
// through caches that all root causes share.
//
// [Pod] and [Deployment] are pure: they read one object and return the cause.
// [Rollout] watches Deployments until they are ready. If one does not become
// ready, it collects the causes from pods, logs and events.
//
// A wait ends early if waiting cannot help: an invalid image name, an image
// that does not exist or that requires other credentials, a missing Secret or
// ConfigMap of a container, a container with three restarts, a pod that
// admission rejects (PriorityClass, Pod Security, a webhook), and a Deployment
// past its progress deadline. Temporary causes are only reported: an
// unreachable or rate-limiting registry, the first restarts, an exceeded quota,
// an unschedulable pod.
package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// Cause is the reason why a workload is not ready.
type Cause struct {
	// Message is the cause in one line.
	Message string
	// Remedy is the fix, or "" if there is none.
	Remedy string
	// Final is set if waiting cannot resolve the cause.
	Final bool
	// Vague is set if the cause is only progress, which also occurs in a healthy rollout.
	Vague bool
	// Log is the end of the log of the terminated container.
	Log []string

	pod, container string
	// kind identifies the cause if the message contains changing names.
	kind string
	// rejection is the error with which the API server rejects the pods.
	rejection failure.Failure
}

// Trouble is a workload that is not ready, with the cause.
type Trouble struct {
	Name string
	Cause
}

// NotReadyError is returned for workloads that have not become ready.
type NotReadyError struct {
	// Namespace is the namespace of the workloads.
	Namespace string
	// Troubles has at least one entry.
	Troubles []Trouble
	// Err is the error of the context if it ended the wait, and nil otherwise.
	Err error
}

// Error returns a line for each workload, followed by the log of its container
// and the remedy.
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

// Verdict returns a case for each remedy: workloads with the same remedy are
// one case, unless their containers have printed logs.
func (e *NotReadyError) Verdict() Verdict {
	v := Verdict{Looked: len(e.Troubles)}
	for _, t := range e.Troubles {
		object := deploymentID(e.Namespace, t.Name)
		same := func(c Case) bool {
			return t.Remedy != "" && len(t.Log) == 0 && slices.Equal(c.Root.Remedies, []string{t.Remedy})
		}
		if i := slices.IndexFunc(v.Cases, same); i >= 0 {
			v.Cases[i].Also = append(v.Cases[i].Also, object)
			continue
		}
		f := Finding{Object: object, Code: "controller-down", Message: t.Message, Details: t.logged()}
		f.Remedies = []string{cmp.Or(t.Remedy, hint.Command("kubectl -n %s describe pods -l %s", e.Namespace, "app="+t.Name))}
		v.Cases = append(v.Cases, single(f))
	}
	return v
}

// Unwrap returns the error of the context.
func (e *NotReadyError) Unwrap() error { return e.Err }

// Details returns the end of the log and the remedy.
func (c Cause) Details() []string {
	lines := c.logged()
	if c.Remedy != "" {
		lines = append(lines, c.Remedy)
	}
	return lines
}

// logged returns the lines of the log with a prefix.
func (c Cause) logged() []string {
	var lines []string
	for _, line := range c.Log {
		lines = append(lines, "| "+line)
	}
	return lines
}
