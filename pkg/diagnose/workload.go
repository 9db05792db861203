package diagnose

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// shownPods is how many pods of one workload are told of: those of a rollout
// fail alike.
const shownPods = 2

// Workloads tells which pods of some objects are not ready and why, and which
// Deployments have none that could tell. Objects that have no pods are skipped,
// and so is what cannot be read. It sends a list of pods a namespace, and one
// of Deployments where a Deployment has no pods.
func Workloads(ctx context.Context, client *kube.Client, objects []controllers.Target) []Trouble {
	byNamespace := map[string][]controllers.Target{}
	for _, t := range objects {
		switch t.Kind {
		case "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "Pod":
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
		troubles[i].Remedy = "" // the ways out of Flux's own pods are not those of any pod
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
	var troubles, mute []Trouble
	for _, t := range objects {
		found, has := podTroubles(t, all)
		troubles = append(troubles, found...)
		if !has && t.Kind == "Deployment" {
			mute = append(mute, Trouble{Name: t.Name})
		}
	}
	r.enrich(ctx, troubles)
	return append(troubles, podless(ctx, client, namespace, mute)...)
}

// podTroubles are the pods of one object that are not ready; has tells whether
// it has any at all.
func podTroubles(t controllers.Target, pods []*corev1.Pod) (troubles []Trouble, has bool) {
	for _, p := range pods {
		if !owns(t, p) {
			continue
		}
		has = true
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
	return troubles, has
}

// owns tells whether a pod is an object's. What stands between a Deployment or
// a CronJob and its pods is named after it, so no request is needed to tell.
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

// podless asks Deployments without pods for what is in the way.
func podless(ctx context.Context, client *kube.Client, namespace string, mute []Trouble) []Trouble {
	if len(mute) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, t := range mute {
		names[t.Name] = true
	}
	var troubles []Trouble
	_, err := client.List(ctx, deployments(), kube.Selection{Namespace: namespace}, func(o controllers.Object) error {
		d := &appsv1.Deployment{}
		if !names[controllers.Name(o)] || runtime.DefaultUnstructuredConverter.FromUnstructured(o, d) != nil {
			return nil
		}
		if c, found := Deployment(d); found {
			troubles = append(troubles, Trouble{"Deployment/" + namespace + "/" + d.Name, c})
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return troubles
}
