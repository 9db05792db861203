package rollout

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

const (
	// crashMemory is the time without a crash after which the kubelet resets the restart delay of a container.
	crashMemory = 10 * time.Minute
	// minCrashes is the number of restarts of a crash loop. A controller may exit once because of a dependency.
	minCrashes = 2
)

// Crash is the end of the last run of a container in a crash loop.
type Crash struct {
	Pod     string
	At      time.Time
	Problem Problem
}

// Crashes returns the containers of a Deployment in crash loops, with the last lines of their logs. The containers may currently
// be running.
func Crashes(ctx context.Context, c *observe.Cluster, d *appsv1.Deployment, pods []*corev1.Pod, now time.Time) []Crash {
	var crashes []Crash
	for _, p := range pods {
		if !Owns(DeploymentID(d.Namespace, d.Name), p) || p.DeletionTimestamp != nil {
			continue
		}
		for _, status := range p.Status.ContainerStatuses {
			if end, ok := lastCrash(status, now); ok {
				problem := ended(p, status, end)
				problem.Log = log(ctx, c, d.Namespace, problem)
				crashes = append(crashes, Crash{p.Name, end.FinishedAt.UTC(), problem})
			}
		}
	}
	return crashes
}

// lastCrash returns the end of the last run of a container in a crash loop: a short and recent failed run that was not the first.
func lastCrash(s corev1.ContainerStatus, now time.Time) (*corev1.ContainerStateTerminated, bool) {
	end := s.LastTerminationState.Terminated
	if end == nil || end.ExitCode == 0 || s.RestartCount < minCrashes {
		return nil, false
	}
	short := end.FinishedAt.Sub(end.StartedAt.Time) < crashMemory
	return end, short && now.Sub(end.FinishedAt.Time) < crashMemory
}

// LastStart returns the time of the last start of a container of a workload, or zero if none is running.
func LastStart(t controllers.ID, pods []*corev1.Pod) time.Time {
	var last time.Time
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			if r := s.State.Running; r != nil && Owns(t, p) && r.StartedAt.After(last) {
				last = r.StartedAt.UTC()
			}
		}
	}
	return last
}

// Interrupted reports whether the availability of a Deployment has changed since its rollout, for example between two runs of a
// container. The status does not show how often this happened.
func Interrupted(d *appsv1.Deployment) bool {
	available, known := deploymentCondition(d, appsv1.DeploymentAvailable)
	progressing, rolled := deploymentCondition(d, appsv1.DeploymentProgressing)
	return known && rolled && available.LastTransitionTime.After(progressing.LastUpdateTime.Time)
}

// NeverComplete reports whether the current template of a Deployment that has an earlier template has never been rolled out
// completely. If updates conflict while a ReplicaSet is created, the message of the Progressing condition still contains the name
// of the earlier ReplicaSet, and the pods are not older than the condition. Times have a resolution of one second.
func NeverComplete(d *appsv1.Deployment, pods []*corev1.Pod) bool {
	number, err := strconv.Atoi(d.Annotations[revision])
	c, ok := deploymentCondition(d, appsv1.DeploymentProgressing)
	if err != nil || number < 2 || !ok {
		return false
	}
	isNewer := func(p *corev1.Pod) bool {
		replicaSet := strconv.Quote(d.Name + "-" + p.Labels[hash])
		return Owns(DeploymentID(d.Namespace, d.Name), p) && !p.CreationTimestamp.Before(&c.LastUpdateTime) && !strings.Contains(c.Message, replicaSet)
	}
	return c.Reason != "NewReplicaSetAvailable" || strings.HasPrefix(c.Message, "ReplicaSet ") && slices.ContainsFunc(pods, isNewer)
}
