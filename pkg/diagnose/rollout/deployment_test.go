package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestRolled(t *testing.T) {
	t.Parallel()
	none := int32(0)
	for name, c := range map[string]struct {
		deployment appsv1.Deployment
		want       bool
	}{
		"new":            {appsv1.Deployment{}, false},
		"done":           {appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}}, true},
		"earlier pod":    {appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}}, false},
		"not available":  {appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1}}, false},
		"scaled to zero": {appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &none}}, true},
	} {
		if got := Complete(&c.deployment); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
	unseen := appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}}
	unseen.Generation = 2
	if Complete(&unseen) {
		t.Error("the status of an earlier generation counts as current")
	}
}

func TestDeploymentRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message string
		want    Problem
	}{
		"quota": {`pods "a" is forbidden: exceeded quota: few, requested: pods=1`,
			Problem{Message: `ResourceQuota exceeded: pods "a" is forbidden: exceeded quota: few, requested: pods=1`, Remedy: "raise the ResourceQuota named in the message"}},
		"priority class": {`pods "a" is forbidden: no PriorityClass with name urgent was found`,
			Problem{Message: `PriorityClass not found: pods "a" is forbidden: no PriorityClass with name urgent was found`, Remedy: "create it, or use an existing one: kubectl get priorityclasses", Final: true}},
		"pod security": {`pods "a" is forbidden: violates PodSecurity "restricted:latest": x`,
			Problem{Message: `the Pod Security level of the namespace forbids the pod: pods "a" is forbidden: violates PodSecurity "restricted:latest": x`, Remedy: "change the label pod-security.kubernetes.io/enforce of the namespace", Final: true}},
		"webhook": {`admission webhook "v.example.com" denied the request: unsigned image`,
			Problem{Message: `an admission webhook or policy rejected the pod: admission webhook "v.example.com" denied the request: unsigned image`, Remedy: "change the webhook or policy to allow the pods", Final: true}},
		"limit range": {`pods "a" is forbidden: maximum cpu usage per Container is 200m, but limit is 1`,
			Problem{Message: `a LimitRange of the namespace does not allow the pod: pods "a" is forbidden: maximum cpu usage per Container is 200m, but limit is 1`, Remedy: "change the resources of the pod, or the LimitRange", Final: true}},
		"service account": {`pods "a-" is forbidden: error looking up service account apps/gone: serviceaccount "gone" not found`,
			Problem{Message: `ServiceAccount not found: pods "a-" is forbidden: error looking up service account apps/gone: serviceaccount "gone" not found`, Remedy: "create the ServiceAccount named in the message"}},
		"webhook that is down": {`Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://v.apps.svc:443/?timeout=10s": no endpoints available for service "v"`,
			Problem{Message: `an admission webhook cannot be called: Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://v.apps.svc:443/?timeout=10s": no endpoints available for service "v"`, Remedy: "start the webhook's pods"}},
		"named like a quota":         {`pods "exceeded-quota" is forbidden: node selector conflict`, Problem{Message: `its pods cannot be created: FailedCreate: pods "exceeded-quota" is forbidden: node selector conflict`}},
		"named like Pod Security":    {`Pod "violates-podsecurity" is invalid: spec.serviceAccountName: Invalid value: "violates PodSecurity": a lowercase name`, Problem{Message: `its pods cannot be created: FailedCreate: Pod "violates-podsecurity" is invalid: spec.serviceAccountName: Invalid value: "violates PodSecurity": a lowercase name`}},
		"named like a webhook":       {`pods "admission-webhook" is forbidden: some plugin`, Problem{Message: `its pods cannot be created: FailedCreate: pods "admission-webhook" is forbidden: some plugin`}},
		"account in another message": {`Pod "serviceaccount" is invalid: spec: Required value`, Problem{Message: `its pods cannot be created: FailedCreate: Pod "serviceaccount" is invalid: spec: Required value`}},
		"something else":             {`the server is on fire`, Problem{Message: "its pods cannot be created: FailedCreate: the server is on fire"}},
	} {
		d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: c.message},
		}}}
		got, found := Deployment(d)
		if !found {
			t.Errorf("%s: nothing found", name)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Problem{}), cmpopts.IgnoreFields(Problem{}, "Rejection")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
