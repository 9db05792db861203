package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// Object returns the problem of an object that is not a workload: a Service without pods or an address, a PodDisruptionBudget
// that allows no disruption, an unbound PersistentVolumeClaim, or a custom resource whose Ready condition is False. It returns false
// for other objects.
func Object(ctx context.Context, c *observe.Cluster, o controllers.Object) (p Problem, found bool) {
	t := controllers.IDOf(o)
	switch {
	case t.Group == "" && t.Kind == "Service":
		if s, err := observe.Decode[corev1.Service](o); err == nil {
			p, found = service(ctx, c, t, s)
		}
	case t.Group == policyv1.GroupName && t.Kind == "PodDisruptionBudget":
		if b, err := observe.Decode[policyv1.PodDisruptionBudget](o); err == nil {
			p, found = budgetOf(b)
		}
	case t.Group == "" && t.Kind == "PersistentVolumeClaim":
		p, found = Claim(ctx, c, t.Namespace, t.Name)
		_, reason, _ := strings.Cut(p.Message, ", which is not bound")
		p.Message = "it is not bound" + reason
	case !controllers.IsBuiltInGroup(t.Group):
		c, _ := controllers.FindCondition(o, "Ready")
		p, found = Problem{Message: "it is not ready: " + failure.Join(c.Reason, c.Message)}, c.Status == "False"
	}
	p.Name, p.Object = t.String(), t
	return p, found
}

// service returns why a Service has no pods or no address.
func service(ctx context.Context, c *observe.Cluster, t controllers.ID, s *corev1.Service) (Problem, bool) {
	pods, err := c.Pods(ctx, s.Namespace)
	selector := labels.SelectorFromSet(s.Spec.Selector)
	selected := func(p *corev1.Pod) bool { return selector.Matches(labels.Set(p.Labels)) }
	switch {
	case len(s.Spec.Selector) > 0 && err == nil && !slices.ContainsFunc(pods, selected):
		return Problem{Message: fmt.Sprintf("no pod in namespace %s matches its selector: %s", s.Namespace, selector), Remedy: fmt.Sprintf("start the pods if their workload is scaled to zero, or correct .spec.selector of %s or the labels of the pods", t)}, true
	case s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) == 0:
		p := Problem{Message: "it has no load balancer address", Remedy: "install a controller for Services of type LoadBalancer, or check its logs"}
		if events, err := c.Events(ctx, t); err == nil && len(events) > 0 {
			last := events[len(events)-1]
			p.Message += ": " + failure.Join(last.Reason, last.Message)
		}
		return p, true
	}
	return Problem{}, false
}

// budgetOf returns why a PodDisruptionBudget never allows a disruption, although all pods are healthy.
func budgetOf(b *policyv1.PodDisruptionBudget) (Problem, bool) {
	expected := int(b.Status.ExpectedPods)
	if b.Status.DisruptionsAllowed > 0 || expected == 0 || int(b.Status.CurrentHealthy) < expected {
		return Problem{}, false
	}
	field := "minAvailable"
	value := b.Spec.MinAvailable
	if value == nil {
		field, value = "maxUnavailable", b.Spec.MaxUnavailable
	}
	if value == nil {
		return Problem{}, false
	}
	if n, err := intstr.GetScaledValueFromIntOrPercent(value, expected, true); err != nil || field == "minAvailable" && n < expected || field == "maxUnavailable" && n > 0 {
		return Problem{}, false
	}
	return Problem{
		Message: fmt.Sprintf("it does not allow evictions, although all %d pods are healthy: .spec.%s is %s", expected, field, value.String()),
		Remedy:  "change .spec." + field + " so that one pod may be unavailable, or run more replicas",
	}, true
}
