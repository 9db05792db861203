package diagnose

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/internal/hint"
)

const (
	// crashMemory is the time without a crash after which the kubelet restarts a container without a
	// delay again.
	crashMemory = 10 * time.Minute
	// minCrashes is the number of restarts of a crash loop. A controller may end once because of a
	// dependency.
	minCrashes = 2
)

// crash is a controller in a crash loop, which is available between crashes.
type crash struct {
	Finding
	at time.Time
}

// interrupted reports whether a Deployment has been unavailable since its rollout, such as between
// two runs of a container. How often that has happened is not in its status.
func interrupted(d *appsv1.Deployment) bool {
	available, known := deploymentCondition(d, appsv1.DeploymentAvailable)
	progressing, rolled := deploymentCondition(d, appsv1.DeploymentProgressing)
	return known && rolled && available.LastTransitionTime.After(progressing.LastUpdateTime.Time)
}

// lastCrash returns the end of the last run of a container in a crash loop: a short and recent run that
// failed, which was not the first.
func lastCrash(s corev1.ContainerStatus, now time.Time) (*corev1.ContainerStateTerminated, bool) {
	end := s.LastTerminationState.Terminated
	if end == nil || end.ExitCode == 0 || s.RestartCount < minCrashes {
		return nil, false
	}
	short := end.FinishedAt.Sub(end.StartedAt.Time) < crashMemory
	return end, short && now.Sub(end.FinishedAt.Time) < crashMemory
}

// readCrashes finds the controllers in crash loops among those that are available at present. Pods
// that cannot be read are ignored: nothing else depends on them.
func (s *installation) readCrashes(ctx context.Context, names []string, read *workloads) {
	if len(names) == 0 {
		return
	}
	all, err := read.podsIn(ctx, s.Home)
	if err != nil {
		return
	}
	for _, name := range names {
		for _, p := range all {
			if !owns(deploymentID(s.Home, name), p) || p.DeletionTimestamp != nil {
				continue
			}
			for _, status := range p.Status.ContainerStatuses {
				if end, ok := lastCrash(status, s.Now); ok {
					s.crashing[name] = s.crashOf(ctx, name, ended(p, status, end), end, read)
				}
			}
		}
	}
}

func (s *installation) crashOf(ctx context.Context, name string, cause Cause, end *corev1.ContainerStateTerminated, read *workloads) crash {
	cause.Log, _ = read.log(ctx, containerLog{s.Home, cause.pod, cause.container}) // the finding is valid without it
	f := Finding{
		Object: deploymentID(s.Home, name), Code: "controller-crashing",
		Message: "the " + name + " is in a crash loop: " + cause.Message, Details: cause.logged(),
		Remedies: []string{
			"suspend the object whose reconciliation ends the controller, if the log names one, and report the failure",
			hint.Command("kubectl -n %s logs %s --previous", s.Home, cause.pod),
		},
	}
	if cause.Remedy != "" {
		f.Remedies[0] = cause.Remedy
	}
	return crash{f, end.FinishedAt.UTC()}
}

// crashed returns the finding for a controller that has crashed since a reconciliation began. A zero time
// means that the start is not known.
func (s *installation) crashed(controller string, since time.Time) (*Finding, bool) {
	c, ok := s.crashing[controller]
	if !ok || c.at.Before(since) {
		return nil, false
	}
	return &c.Finding, true
}

// notable returns the most informative lines of a log: from the last panic of a Go program on, or else
// the last lines.
func notable(lines []string) []string {
	from := max(0, len(lines)-logLines)
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			from = i
		}
	}
	return lines[from:min(from+logLines, len(lines))]
}
