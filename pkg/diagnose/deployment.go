package diagnose

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Rolled tells whether a Deployment runs what its spec asks for: all pods are
// of the present template, and all of them are available.
func Rolled(d *appsv1.Deployment) bool {
	want := wanted(d)
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas >= want && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
}

func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// refusal is a reason for which the server makes no pod.
type refusal struct {
	words  []string // of which the server's message has one
	says   string
	remedy string
	final  bool
}

// refusals are tried in order. A quota or a service account may come free or
// into being within moments; the rest stays as it is.
var refusals = []refusal{
	{[]string{"exceeded quota", "insufficient quota"}, "a quota of the namespace allows no more pods", "raise the ResourceQuota that the message names", false},
	{[]string{"no priorityclass with name"}, "the cluster has no such priority class", "create it: kubectl get priorityclasses shows those that there are", true},
	{[]string{"violates podsecurity"}, "the namespace's Pod Security level forbids the pod", "lower the label pod-security.kubernetes.io/enforce of the namespace", true},
	{[]string{"admission webhook", "validatingadmissionpolicy", "failed calling webhook"}, "an admission webhook or policy forbids the pod", "let it pass the pods of this namespace", true},
	{[]string{"serviceaccount"}, "the pod's service account is missing", "", false},
}

// Deployment tells why a Deployment has no pods that could tell it themselves;
// false says that its own status has nothing against it.
func Deployment(d *appsv1.Deployment) (Cause, bool) {
	if Rolled(d) {
		return Cause{}, false
	}
	if d.Status.ObservedGeneration < d.Generation {
		return Cause{
			Message: "the cluster's controller manager has not seen the Deployment yet",
			Remedy:  "check that kube-controller-manager runs", Vague: true,
		}, true
	}
	if c, ok := deploymentCondition(d, appsv1.DeploymentReplicaFailure); ok && c.Status == corev1.ConditionTrue {
		return refused(c.Reason, c.Message), true
	}
	if c, ok := deploymentCondition(d, appsv1.DeploymentProgressing); ok && c.Status == corev1.ConditionFalse {
		return Cause{Message: join(c.Reason, c.Message), Final: true}, true
	}
	return Cause{}, false
}

func refused(reason, message string) Cause {
	lower := strings.ToLower(message)
	for _, r := range refusals {
		for _, word := range r.words {
			if strings.Contains(lower, word) {
				return Cause{Message: fmt.Sprintf("%s: %s", r.says, oneLine(message)), Remedy: r.remedy, Final: r.final, kind: r.says}
			}
		}
	}
	return Cause{Message: "its pods cannot be created: " + join(reason, message)}
}

func deploymentCondition(d *appsv1.Deployment, typ appsv1.DeploymentConditionType) (appsv1.DeploymentCondition, bool) {
	for _, c := range d.Status.Conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return appsv1.DeploymentCondition{}, false
}
