// Package rollout determines why workloads are not ready, from Deployments, pods, logs and events.
//
// [Pod] and [Deployment] are pure: they read one object and return its problem. [Problems] returns the current problems of
// workloads. A [Waiter] watches Deployments until they are ready, and ends early if waiting cannot help: an invalid image name,
// an image that does not exist or that requires other credentials, a missing Secret or ConfigMap of a container, a container with
// three restarts, a pod that admission rejects (PriorityClass, Pod Security, a webhook), and a Deployment past its progress
// deadline. Temporary problems are only reported: an unreachable or rate-limiting registry, the first restarts, an exceeded
// quota, an unschedulable pod.
package rollout

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// Problem is the reason why a workload is not ready.
type Problem struct {
	// Name is the name of the workload.
	Name string
	// Object is the workload, if the problem is about one of several.
	Object controllers.ID
	// Message is the reason in one line. Remedy is the fix, or "" if there is none. Flags lists the flags of install and
	// bootstrap that fix Flux pods.
	Message, Remedy, Flags string
	// Final is set if waiting cannot resolve the problem. Vague is set if it is only progress, which also occurs in a healthy
	// rollout.
	Final, Vague bool
	// Log is the end of the log of the terminated container.
	Log []string
	// Rejection is the error with which the API server rejects the pods.
	Rejection failure.Failure

	pod, container string
	// previous is set if the log is from the previous run of the container.
	previous bool
	// kind identifies the problem if the message contains changing names.
	kind string
}

// Details returns the end of the log and the remedy for a Flux pod.
func (p Problem) Details() []string {
	lines := p.LogLines()
	if p.Remedy != "" {
		lines = append(lines, p.RemedyOfFlux())
	}
	return lines
}

// RemedyOfFlux returns the remedy for a Flux pod, with the flags of install and bootstrap.
func (p Problem) RemedyOfFlux() string {
	if p.Flags == "" {
		return p.Remedy
	}
	return p.Remedy + " (" + p.Flags + " of install and bootstrap)"
}

// LogCommand returns the command that prints the log of the container with the problem, or "" if it has none.
func (p Problem) LogCommand(namespace string) string {
	if p.container == "" || len(p.Log) == 0 {
		return ""
	}
	command := hint.Command("kubectl -n %s logs %s -c %s", namespace, p.pod, p.container)
	if p.previous {
		command += " --previous"
	}
	return command
}

// LogLines returns the lines of the log with a prefix.
func (p Problem) LogLines() []string {
	var lines []string
	for _, line := range p.Log {
		lines = append(lines, "| "+line)
	}
	return lines
}

// NotReadyError is returned for workloads that have not become ready.
type NotReadyError struct {
	// Namespace is the namespace of the workloads.
	Namespace string
	// Problems has at least one entry.
	Problems []Problem
	// Err is the error of the context if it ended the wait, and nil otherwise.
	Err error
}

// Error returns a line for each workload, followed by the log of its container and the remedy.
func (e *NotReadyError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s is not ready: %s", p.Name, p.Message)
		for _, line := range p.Details() {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// Unwrap returns the error of the context.
func (e *NotReadyError) Unwrap() error { return e.Err }
