package diagnose

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// shownPods is the maximum number of pods of one workload to report: pods of a
// rollout fail alike.
const shownPods = 2

// workloadGroups maps the kinds of workloads to their groups.
var workloadGroups = map[string]string{
	"Deployment": appsv1.GroupName, "StatefulSet": appsv1.GroupName, "DaemonSet": appsv1.GroupName, "ReplicaSet": appsv1.GroupName,
	"Job": batchv1.GroupName, "CronJob": batchv1.GroupName, "Pod": corev1.GroupName,
}

// hasPods reports whether an object is a workload.
func hasPods(t controllers.ID) bool {
	group, ok := workloadGroups[t.Kind]
	return ok && group == t.Group
}

func deploymentID(namespace, name string) controllers.ID {
	return controllers.ID{Group: appsv1.GroupName, Kind: "Deployment", Namespace: namespace, Name: name}
}

// workloads finds the problems of workloads: pods that are not ready, rejected
// pods, and events of deleted pods. It lists the pods of each namespace, and
// reads the log of each container, once: several root causes may have workloads
// in one namespace.
type workloads struct {
	client  *kube.Client
	history *history
	pods    cache[string, []*corev1.Pod]
	logs    cache[containerLog, []string]
}

// containerLog identifies the log of a container.
type containerLog struct{ namespace, pod, container string }

func newWorkloads(client *kube.Client) *workloads {
	return &workloads{client: client, history: &history{client: client}}
}

// troubles returns the pods of some objects that are not ready, and the
// workloads with fewer pods than desired, with the causes, and describes what
// could not be read. It skips objects without pods. It sends a list of pods for
// each namespace and, if the pods are ready, a list for each kind of workload
// and one of the events of rejected pods.
func (w *workloads) troubles(ctx context.Context, objects []controllers.ID) (troubles []Trouble, unknown []string) {
	byNamespace := map[string][]controllers.ID{}
	for _, t := range objects {
		if hasPods(t) {
			byNamespace[t.Namespace] = append(byNamespace[t.Namespace], t)
		}
	}
	for _, namespace := range sortedKeys(byNamespace) {
		found, unread := w.inNamespace(ctx, namespace, byNamespace[namespace])
		troubles, unknown = append(troubles, found...), append(unknown, unread...)
	}
	for i := range troubles {
		troubles[i].Remedy = "" // the remedies for pods of Flux do not apply to other pods
	}
	return troubles, unknown
}

// inNamespace is troubles for objects in one namespace.
func (w *workloads) inNamespace(ctx context.Context, namespace string, objects []controllers.ID) ([]Trouble, []string) {
	all, err := w.podsIn(ctx, namespace)
	if err != nil {
		return nil, []string{unseen(err) + ": pods in namespace " + namespace}
	}
	var troubles []Trouble
	var quiet []controllers.ID
	for _, t := range objects {
		found := podTroubles(t, all)
		troubles = append(troubles, found...)
		if len(found) == 0 {
			quiet = append(quiet, t)
		}
	}
	w.enrich(ctx, namespace, troubles)
	rejected, unknown := w.short(ctx, namespace, quiet)
	return append(troubles, rejected...), unknown
}

// podsIn returns the pods of a namespace, sorted by name.
func (w *workloads) podsIn(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	return w.pods.get(namespace, func() ([]*corev1.Pod, error) {
		found := &Rollout{pods: map[string]*corev1.Pod{}}
		_, err := w.client.List(ctx, pods(), kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields"}}, found.takePod)
		return slices.SortedFunc(maps.Values(found.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }), err
	})
}

// enrich adds the end of the container log, and the last warning about a pod
// without a definite cause. Errors are ignored: the cause is valid without
// them.
func (w *workloads) enrich(ctx context.Context, namespace string, troubles []Trouble) {
	var warnings map[string]string
	for i := range troubles {
		t := &troubles[i]
		if t.container != "" {
			t.Log, _ = w.log(ctx, containerLog{namespace, t.pod, t.container})
		}
		if !t.Vague || t.pod == "" {
			continue
		}
		if warnings == nil {
			warnings, _ = w.history.warnings(ctx, namespace)
		}
		if warning := warnings[t.pod]; warning != "" {
			t.Message += ": " + warning
		}
	}
}

// log returns the most informative lines at the end of the log of the previous
// container, or of the current one if there is none.
func (w *workloads) log(ctx context.Context, of containerLog) ([]string, error) {
	return w.logs.get(of, func() (lines []string, err error) {
		for _, previous := range []bool{true, false} {
			var text []byte
			text, err = w.client.Pods().Log(ctx, kube.PodLog{Namespace: of.namespace, Pod: of.pod, Container: of.container, Previous: previous, Lines: readLines})
			if err != nil || len(strings.TrimSpace(string(text))) == 0 {
				continue
			}
			for line := range strings.Lines(strings.TrimSpace(string(text))) {
				lines = append(lines, oneLine(line))
			}
			return notable(lines), nil
		}
		return nil, err
	})
}

// podTroubles returns the pods of one object that are not ready.
func podTroubles(t controllers.ID, pods []*corev1.Pod) (troubles []Trouble) {
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
func owns(t controllers.ID, p *corev1.Pod) bool {
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
