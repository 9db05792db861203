package rollout

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// maxRestarts is the number of restarts from which a container is considered failing. A controller may restart once or twice until
// its dependencies are available.
const maxRestarts = 3

// definitive lists the registry errors that a retry does not resolve, in contrast to rate limits
// and connection errors.
var definitive = []failure.Type{failure.Unauthenticated, failure.NoRevision, failure.NoRepository, failure.NoPlatform}

// Pod returns why a pod is not ready. It returns false if the pod is ready, or being deleted without waiting for a finalizer.
func Pod(p *corev1.Pod) (Problem, bool) {
	if p.DeletionTimestamp != nil {
		return held(p)
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range statuses {
			if problem, ok := container(p, s); ok {
				return problem, true
			}
		}
	}
	if c, ok := podCondition(p, corev1.PodScheduled); ok && c.Status == corev1.ConditionFalse {
		return unschedulable(p, c), true
	}
	if c, ok := podCondition(p, corev1.PodReady); ok && c.Status == corev1.ConditionTrue {
		return Problem{}, false
	}
	if p.Status.Phase == corev1.PodFailed {
		return Problem{Message: fmt.Sprintf("pod %s has failed: %s", p.Name, failure.Join(p.Status.Reason, p.Status.Message)), pod: p.Name}, true
	}
	return stage(p), true
}

// held returns the problem of a pod that is being deleted: its containers have terminated, and only finalizers remain.
func held(p *corev1.Pod) (Problem, bool) {
	alive := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	finalizers := slices.DeleteFunc(slices.Clone(p.Finalizers), func(name string) bool { return slices.Contains(passing, name) })
	if len(finalizers) == 0 || alive {
		return Problem{}, false
	}
	return Problem{
		Message: fmt.Sprintf("pod %s is being deleted and waits for finalizer %s", p.Name, strings.Join(finalizers, ", ")),
		Remedy:  "check that the controller that removes the finalizer is running", pod: p.Name,
	}, true
}

// passing lists the Kubernetes finalizers that pods of some owners have temporarily.
var passing = []string{"batch.kubernetes.io/job-tracking", "foregroundDeletion", "orphan"}

// container returns the problem of a container, if it has one.
func container(p *corev1.Pod, s corev1.ContainerStatus) (Problem, bool) {
	if s.State.Waiting != nil {
		return waiting(p, s, s.State.Waiting)
	}
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
		return ended(p, s, t), true
	}
	return Problem{}, false
}

func waiting(p *corev1.Pod, s corev1.ContainerStatus, w *corev1.ContainerStateWaiting) (Problem, bool) {
	problem := Problem{pod: p.Name, container: s.Name}
	switch w.Reason {
	case "InvalidImageName":
		problem.Message = fmt.Sprintf("the image name %q is not valid", imageOf(p, s))
		problem.Remedy, problem.Final = "correct the image name", true
		problem.Flags = "--registry"
	case "ErrImageNeverPull":
		problem.Message = fmt.Sprintf("the image %q is not on the node, and imagePullPolicy is Never", imageOf(p, s))
		problem.Remedy, problem.Final = "load the image onto the nodes, or change imagePullPolicy", true
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed":
		return pull(p, s, w), true
	case "CrashLoopBackOff":
		if t := s.LastTerminationState.Terminated; t != nil {
			return previous(p, s, t), true
		}
		problem.Message = fmt.Sprintf("container %s is in a crash loop: %s", s.Name, w.Message)
		problem.Final = s.RestartCount >= maxRestarts
	case "CreateContainerConfigError":
		problem.Message = fmt.Sprintf("container %s cannot be configured: %s", s.Name, w.Message)
		problem.Remedy, problem.Final = "create the object named in the message, in the pod's namespace", true
	case "CreateContainerError", "RunContainerError", "PreStartHookError", "PostStartHookError", "CreatePodSandboxError":
		problem.Message = fmt.Sprintf("container %s cannot be started: %s", s.Name, failure.Join(w.Reason, w.Message))
		problem.Final = s.RestartCount >= maxRestarts
	default: // ContainerCreating, PodInitializing: the container is starting
		return Problem{}, false
	}
	return problem, true
}

// pull returns why an image cannot be pulled. The problem is final if the registry returned a definitive error.
func pull(p *corev1.Pod, s corev1.ContainerStatus, w *corev1.ContainerStateWaiting) Problem {
	return Problem{
		Message: fmt.Sprintf("the image %q cannot be pulled: %s", imageOf(p, s), failure.OneLine(pullReason(w.Message, imageOf(p, s)))),
		Remedy:  "check the image name and the pull Secret, and that the nodes can reach the registry",
		Flags:   "--registry and --image-pull-secret",
		Final:   slices.Contains(definitive, failure.Parse(w.Message, failure.Pull).Type),
		pod:     p.Name, container: s.Name,
	}
}

// pullReason removes prefixes that repeat the image from a message of the kubelet.
func pullReason(message, image string) string {
	if _, rest, ok := strings.Cut(message, "ErrImagePull: "); ok {
		message = rest
	}
	if _, rest, ok := strings.Cut(message, " desc = "); ok {
		message = rest
	}
	if i := strings.LastIndex(message, image); i >= 0 {
		if rest := strings.TrimLeft(message[i+len(image):], `": `); rest != "" {
			message = rest
		}
	}
	if message == "" {
		return "the kubelet reported no reason"
	}
	return message
}

// ended returns the problem of a terminated container. explain adds the log.
func ended(p *corev1.Pod, s corev1.ContainerStatus, t *corev1.ContainerStateTerminated) Problem {
	how := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Signal != 0 {
		how = fmt.Sprintf("signal %d", t.Signal)
	}
	problem := Problem{
		Message: fmt.Sprintf("container %s of pod %s terminated with %s", s.Name, p.Name, how),
		Final:   s.RestartCount >= maxRestarts, pod: p.Name, container: s.Name,
	}
	if s.RestartCount > 0 {
		problem.Message += fmt.Sprintf(" (%s)", output.Amount(int(s.RestartCount), "restart"))
	}
	switch {
	case t.Reason == "OOMKilled":
		problem.Message += ": it exceeded its memory limit"
		problem.Remedy = "raise the memory limit of the container"
	case t.Reason != "" && t.Reason != "Error":
		problem.Message += ": " + failure.Join(t.Reason, t.Message)
	case t.Message != "":
		problem.Message += ": " + failure.OneLine(t.Message)
	}
	return problem
}

// previous returns the problem of a container whose previous run has ended.
func previous(p *corev1.Pod, s corev1.ContainerStatus, t *corev1.ContainerStateTerminated) Problem {
	problem := ended(p, s, t)
	problem.previous = true
	return problem
}

func unschedulable(p *corev1.Pod, c corev1.PodCondition) Problem {
	problem := Problem{
		Message: fmt.Sprintf("pod %s is unschedulable: %s", p.Name, failure.OneLine(c.Message)),
		Remedy:  "add a node, free resources on one, or tolerate its taints",
		Flags:   "--toleration-keys",
		pod:     p.Name,
	}
	if c.Reason == corev1.PodReasonSchedulingGated {
		problem.Message = fmt.Sprintf("pod %s waits for its scheduling gates to be removed", p.Name)
		problem.Remedy, problem.Flags = "", ""
	}
	return problem
}

// stage returns the progress of a pod without a known problem.
func stage(p *corev1.Pod) Problem {
	problem := Problem{Vague: true, pod: p.Name}
	switch {
	case p.Spec.NodeName == "":
		problem.Message = fmt.Sprintf("pod %s is not assigned to a node yet", p.Name)
		problem.Remedy = "check that the scheduler is running"
	case running(p):
		for _, c := range p.Status.ContainerStatuses {
			if t := c.LastTerminationState.Terminated; !c.Ready && c.RestartCount > 0 && t != nil && t.ExitCode != 0 {
				problem = previous(p, c, t) // between two crashes, or restarted without becoming ready
				problem.Message += "; it has not been ready since its restart"
				return problem
			}
		}
		problem.Message = fmt.Sprintf("pod %s is running but not ready: its readiness probe has not succeeded", p.Name)
	default:
		problem.Message = fmt.Sprintf("pod %s is starting on node %s", p.Name, p.Spec.NodeName)
	}
	return problem
}

func running(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running == nil {
			return false
		}
	}
	return len(p.Status.ContainerStatuses) > 0
}

func podCondition(p *corev1.Pod, typ corev1.PodConditionType) (corev1.PodCondition, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return corev1.PodCondition{}, false
}

// imageOf returns the image in the pod spec. The status may contain a different name.
func imageOf(p *corev1.Pod, s corev1.ContainerStatus) string {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			if c.Name == s.Name {
				return c.Image
			}
		}
	}
	return s.Image
}
