package diagnose

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

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

// podReader finds workloads with problems. It lists the pods of each namespace
// once: several root causes may have workloads in one namespace.
type podReader struct {
	client *kube.Client

	mu   sync.Mutex
	pods map[string]func() ([]*corev1.Pod, error)
}

func newPodReader(client *kube.Client) *podReader {
	return &podReader{client: client, pods: map[string]func() ([]*corev1.Pod, error){}}
}

// workloads returns the pods of some objects that are not ready, and the
// workloads with fewer pods than desired, with the causes, and describes what
// could not be read. It skips objects without pods. It sends a list of pods for
// each namespace and, if the pods are ready, a list for each kind of workload
// and one of the events of rejected pods.
func (r *podReader) workloads(ctx context.Context, objects []controllers.Target) (troubles []Trouble, unknown []string) {
	byNamespace := map[string][]controllers.Target{}
	for _, t := range objects {
		if hasPods(t) {
			byNamespace[t.Namespace] = append(byNamespace[t.Namespace], t)
		}
	}
	for _, namespace := range sortedKeys(byNamespace) {
		found, unread := r.inNamespace(ctx, namespace, byNamespace[namespace])
		troubles, unknown = append(troubles, found...), append(unknown, unread...)
	}
	for i := range troubles {
		troubles[i].Remedy = "" // the remedies for pods of Flux do not apply to other pods
	}
	return troubles, unknown
}

// inNamespace is workloads for objects in one namespace.
func (r *podReader) inNamespace(ctx context.Context, namespace string, objects []controllers.Target) ([]Trouble, []string) {
	all, err := r.podsIn(ctx, namespace)
	if err != nil {
		return nil, []string{unseen(err) + ": pods in namespace " + namespace}
	}
	var troubles []Trouble
	var quiet []controllers.Target
	for _, t := range objects {
		found := podTroubles(t, all)
		troubles = append(troubles, found...)
		if len(found) == 0 {
			quiet = append(quiet, t)
		}
	}
	(&Rollout{Client: r.client, Namespace: namespace}).enrich(ctx, troubles)
	rejected, unknown := short(ctx, r.client, namespace, quiet)
	return append(troubles, rejected...), unknown
}

// podsIn returns the pods of a namespace, sorted by name.
func (r *podReader) podsIn(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	r.mu.Lock()
	read, known := r.pods[namespace]
	if !known {
		read = sync.OnceValues(func() ([]*corev1.Pod, error) {
			found := &Rollout{pods: map[string]*corev1.Pod{}}
			_, err := r.client.List(ctx, pods(), kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields"}}, found.takePod)
			return slices.SortedFunc(maps.Values(found.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }), err
		})
		r.pods[namespace] = read
	}
	r.mu.Unlock()
	return read()
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
