package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// explainScheduling adds details about unschedulable pods that the scheduler does not report: why a volume is not bound, and
// which nodes are cordoned. Errors are ignored: the problem is valid without them.
func explainScheduling(ctx context.Context, c *observe.Cluster, pods []*corev1.Pod, problems []Problem) {
	for i := range problems {
		p := &problems[i]
		at := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == p.pod })
		if at < 0 || !strings.Contains(p.Message, " is unschedulable: ") {
			continue
		}
		if strings.Contains(p.Message, "PersistentVolumeClaim") || strings.Contains(p.Message, "persistentvolumeclaim") {
			explainVolumes(ctx, c, p, pods[at])
		}
		if strings.Contains(p.Message, "node(s) were unschedulable") {
			explainNodes(ctx, c, p)
		}
	}
}

// explainVolumes makes the first unbound claim of a pod the problem.
func explainVolumes(ctx context.Context, c *observe.Cluster, p *Problem, pod *corev1.Pod) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, found := Claim(ctx, c, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if found && !claim.Vague {
			p.Message, p.Remedy, p.Flags = fmt.Sprintf("pod %s waits for %s", pod.Name, claim.Message), claim.Remedy, ""
			return
		}
	}
}

// Claim returns why a PersistentVolumeClaim is not bound. It returns false if the claim is bound or cannot be read.
func Claim(ctx context.Context, c *observe.Cluster, namespace, name string) (Problem, bool) {
	t := controllers.ID{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}
	o, err := c.Client.Get(ctx, kube.BuiltIn("v1", t.Kind), namespace, name)
	if apierrors.IsNotFound(err) {
		return Problem{Name: t.String(), Object: t, Message: t.String() + ", which does not exist", Remedy: "create " + t.String() + ", or correct the name of the claim"}, true
	}
	if err != nil {
		return Problem{}, false
	}
	claim, err := observe.Decode[corev1.PersistentVolumeClaim](o)
	if err != nil || claim.Status.Phase == corev1.ClaimBound {
		return Problem{}, false
	}
	problem := Problem{Name: t.String(), Object: t, Message: t.String() + ", which is not bound", Remedy: hint.Command("kubectl -n %s describe persistentvolumeclaim %s", namespace, name)}
	class := claim.Spec.StorageClassName
	if class == nil {
		problem.Message += ": it has no storage class"
		problem.Remedy = "set .spec.storageClassName of " + t.String() + ": kubectl get storageclasses"
		return problem, true
	}
	if *class != "" {
		o, err := c.Client.Get(ctx, kube.BuiltIn("storage.k8s.io/v1", "StorageClass"), "", *class)
		// The scheduler binds such a claim when it assigns the pod, so the pod does not wait for the claim.
		problem.Vague = err == nil && (controllers.Path{"volumeBindingMode"}).String(o) == "WaitForFirstConsumer"
		if apierrors.IsNotFound(err) {
			problem.Message += fmt.Sprintf(": StorageClass %s does not exist", *class)
			problem.Remedy = fmt.Sprintf("create StorageClass %s, or correct .spec.storageClassName of %s: kubectl get storageclasses", *class, t)
			return problem, true
		}
	}
	if events, err := c.Events(ctx, t); err == nil && len(events) > 0 {
		last := events[len(events)-1]
		problem.Message += ": " + failure.Join(last.Reason, last.Message)
	}
	return problem, true
}

// explainNodes adds the cordoned nodes, which may be the only ones that fit.
func explainNodes(ctx context.Context, c *observe.Cluster, p *Problem) {
	var cordoned []string
	_, err := c.List(ctx, "v1", "Node", "", func(o controllers.Object) error {
		if (controllers.Path{"spec.unschedulable"}).String(o) == "true" {
			cordoned = append(cordoned, controllers.Name(o))
		}
		return nil
	})
	if err != nil || len(cordoned) == 0 {
		return
	}
	p.Message = strings.TrimSuffix(p.Message, ".") + "; cordoned: " + strings.Join(cordoned[:min(len(cordoned), shownPods)], ", ")
	uncordon := "uncordon a node: kubectl uncordon " + hint.Operand(cordoned[0])
	if strings.Contains(p.Message, "were unschedulable") {
		p.Remedy = uncordon + ", or " + p.Remedy
	} else {
		p.Remedy += ", or " + uncordon
	}
	p.Flags = ""
}
