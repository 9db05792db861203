package rollout

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// Complete reports whether the rollout of a Deployment is complete: all pods have the current template and are available.
func Complete(d *appsv1.Deployment) bool {
	want := Replicas(d)
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas >= want && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
}

// Starting returns the creation time of the newest pod of a Deployment if its pods have no problem except that they are starting.
func Starting(d *appsv1.Deployment, pods []*corev1.Pod, problems []Problem) (created time.Time, is bool) {
	for _, p := range problems {
		if !p.Vague {
			return time.Time{}, false
		}
	}
	for _, p := range pods {
		if at := p.CreationTimestamp.UTC(); Owns(DeploymentID(d.Namespace, d.Name), p) && p.DeletionTimestamp == nil && at.After(created) {
			created = at
		}
	}
	return created, !created.IsZero()
}

// Replicas returns the desired number of pods.
func Replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// rejection is a reason for which the API server rejects a pod.
type rejection struct {
	typ     failure.Type
	message string
	remedy  string
	final   bool
}

// rejections lists the known reasons. Those that may resolve within moments, such as an exceeded quota, are not final.
var rejections = []rejection{
	{failure.Quota, "ResourceQuota exceeded", "raise the ResourceQuota named in the message", false},
	{failure.LimitRange, "a LimitRange of the namespace does not allow the pod", "change the resources of the pod, or the LimitRange", true},
	{failure.PriorityClass, "PriorityClass not found", "create it, or use an existing one: kubectl get priorityclasses", true},
	{failure.PodSecurity, "the Pod Security level of the namespace forbids the pod", "change the label pod-security.kubernetes.io/enforce of the namespace", true},
	{failure.Admission, "an admission webhook or policy rejected the pod", "change the webhook or policy to allow the pods", true},
	{failure.WebhookDown, "an admission webhook cannot be called", "start the webhook's pods", false},
	{failure.Terminating, "the namespace is being deleted", "recreate the namespace when it has been deleted", true},
	{failure.ServiceAccount, "ServiceAccount not found", "create the ServiceAccount named in the message", false},
}

// Deployment returns why a Deployment cannot create pods, according to its status. It returns false if the status reports no such
// reason.
func Deployment(d *appsv1.Deployment) (Problem, bool) {
	if Complete(d) {
		return Problem{}, false
	}
	if d.Status.ObservedGeneration < d.Generation {
		return Problem{
			Message: "kube-controller-manager has not observed the Deployment yet",
			Remedy:  "check that kube-controller-manager is running", Vague: true,
		}, true
	}
	if c, ok := deploymentCondition(d, appsv1.DeploymentReplicaFailure); ok && c.Status == corev1.ConditionTrue {
		return rejected(c.Reason, c.Message), true
	}
	if c, ok := deploymentCondition(d, appsv1.DeploymentProgressing); ok && c.Status == corev1.ConditionFalse {
		return Problem{Message: failure.Join(c.Reason, c.Message), Final: true}, true
	}
	return Problem{}, false
}

// rejected returns why the API server rejects the pods of a workload.
func rejected(reason, message string) Problem {
	f := failure.Parse(message)
	typ := f.Type
	if f.In(failure.Call) {
		typ = failure.WebhookDown
	}
	for _, r := range rejections {
		if r.typ == typ {
			if strings.HasPrefix(f.Detail, "must specify ") {
				r.message, r.remedy = "a ResourceQuota requires requests or limits that the pod does not set", "set them, or add a LimitRange with defaults to the namespace"
			}
			return Problem{Message: fmt.Sprintf("%s: %s", r.message, failure.OneLine(message)), Remedy: r.remedy, Final: r.final, kind: r.message, Rejection: f}
		}
	}
	return Problem{Message: "its pods cannot be created: " + failure.Join(reason, message)}
}

func deploymentCondition(d *appsv1.Deployment, typ appsv1.DeploymentConditionType) (appsv1.DeploymentCondition, bool) {
	for _, c := range d.Status.Conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return appsv1.DeploymentCondition{}, false
}
