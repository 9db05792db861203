package diagnose

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// shownPods is the maximum number of pods of one workload to report: pods of a
// rollout fail alike.
const shownPods = 2

// hasPods reports whether an object is a workload.
func hasPods(t controllers.Target) bool {
	return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "Pod"}, t.Kind)
}

// Workloads returns the pods of some objects that are not ready, and the
// workloads with fewer pods than desired, with the causes. It skips objects
// without pods and objects that cannot be read. It sends a list of pods for
// each namespace and, if the pods are ready, a list for each kind of workload
// and one of the events of rejected pods.
func Workloads(ctx context.Context, client *kube.Client, objects []controllers.Target) []Trouble {
	byNamespace := map[string][]controllers.Target{}
	for _, t := range objects {
		if hasPods(t) {
			byNamespace[t.Namespace] = append(byNamespace[t.Namespace], t)
		}
	}
	var namespaces []string
	for namespace := range byNamespace {
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	var troubles []Trouble
	for _, namespace := range namespaces {
		troubles = append(troubles, workloads(ctx, client, namespace, byNamespace[namespace])...)
	}
	for i := range troubles {
		troubles[i].Remedy = "" // the remedies for pods of Flux do not apply to other pods
	}
	return troubles
}

func workloads(ctx context.Context, client *kube.Client, namespace string, objects []controllers.Target) []Trouble {
	r := &Rollout{Client: client, Namespace: namespace, pods: map[string]*corev1.Pod{}}
	if _, err := client.List(ctx, pods(), kube.Selection{Namespace: namespace}, r.takePod); err != nil {
		return nil
	}
	var all []*corev1.Pod
	for _, p := range r.pods {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var troubles []Trouble
	var quiet []controllers.Target
	for _, t := range objects {
		found := podTroubles(t, all)
		troubles = append(troubles, found...)
		if len(found) == 0 {
			quiet = append(quiet, t)
		}
	}
	r.enrich(ctx, troubles)
	return append(troubles, short(ctx, client, namespace, quiet)...)
}

// podTroubles returns the pods of one object that are not ready.
func podTroubles(t controllers.Target, pods []*corev1.Pod) (troubles []Trouble) {
	for _, p := range pods {
		if !owns(t, p) {
			continue
		}
		c, found := Pod(p)
		if !found || len(troubles) == shownPods {
			continue
		}
		name := t.String()
		if t.Kind != "Pod" && !strings.Contains(c.Message, p.Name) {
			name += ", pod " + p.Name
		}
		troubles = append(troubles, Trouble{name, c})
	}
	return troubles
}

// owns reports whether a pod belongs to an object. The ReplicaSet of a
// Deployment and the Job of a CronJob are named after it, so no request is
// needed.
func owns(t controllers.Target, p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	switch {
	case t.Kind == "Pod":
		return p.Name == t.Name
	case owner == nil:
		return false
	case t.Kind == "Deployment":
		return owner.Kind == "ReplicaSet" && owner.Name == t.Name+"-"+p.Labels[hash]
	case t.Kind == "CronJob":
		i := strings.LastIndexByte(owner.Name, '-')
		return owner.Kind == "Job" && i > 0 && owner.Name[:i] == t.Name
	default:
		return owner.Kind == t.Kind && owner.Name == t.Name
	}
}
