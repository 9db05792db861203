package tree

import (
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/pkg/controllers"
)

// live is the required part of a live object, to save memory for thousands of pods.
type live struct {
	object   controllers.ID
	uid      types.UID
	owner    controllers.ID // in the object's own namespace
	ownerUID types.UID
	status   Status
	message  string
	restarts *int
	created  time.Time
	// deletion is the metadata of an object that is being deleted, else nil.
	deletion controllers.Object
	// idle marks an old ReplicaSet that is scaled to zero.
	idle bool
	// claims lists the names of a StatefulSet's PersistentVolumeClaims without the ordinal.
	claims []string
}

// liveOf returns the required part of an object.
func liveOf(o controllers.Object) live {
	u := &unstructured.Unstructured{Object: wholeNumbers(o).(map[string]any)}
	l := live{
		object:  controllers.IDOf(u.Object),
		uid:     u.GetUID(),
		created: u.GetCreationTimestamp().UTC(),
	}
	l.ownedBy(u)
	if at := u.GetDeletionTimestamp(); at != nil {
		finalizers, _, _ := unstructured.NestedSlice(u.Object, "metadata", "finalizers")
		l.deletion = controllers.Object{"metadata": map[string]any{"deletionTimestamp": at.UTC().Format(time.RFC3339), "finalizers": finalizers}}
	}
	l.status, l.message = readiness(u)
	switch l.object.GroupKind() {
	case pod:
		l.restarts = restarts(u.Object)
		if reason := troubleOf(u.Object); reason != "" && l.status != Ready {
			l.message = reason
		}
	case replicaSet:
		wanted, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		running, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
		l.idle = found && wanted == 0 && running == 0
	case statefulSet:
		l.claims = claims(u.Object, l.object.Name)
	}
	return l
}

// ownedBy sets the controller of the object, or else its first owner.
func (l *live) ownedBy(u *unstructured.Unstructured) {
	for i, ref := range u.GetOwnerReferences() {
		controls := ref.Controller != nil && *ref.Controller
		if i > 0 && !controls {
			continue
		}
		group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		l.owner, l.ownerUID = controllers.NewID(group, u.GetNamespace(), ref.Name), ref.UID
	}
}

// StatusOf returns the status of a live object and its explanation.
func StatusOf(o controllers.Object) (Status, string) {
	return readiness(&unstructured.Unstructured{Object: wholeNumbers(o).(map[string]any)})
}

// readiness returns the kstatus status, except that a Flux object with Ready=False is Failed
// instead of InProgress.
func readiness(u *unstructured.Unstructured) (Status, string) {
	if metadataSuffices[u.GroupVersionKind().GroupKind()] && u.GetDeletionTimestamp() == nil {
		return Ready, "" // its status was not read
	}
	result, err := status.Compute(u)
	if err != nil {
		return Unknown, err.Error()
	}
	verdict, message := Status(result.Status), result.Message
	if result.Status == status.CurrentStatus {
		verdict = Ready
	}
	kind, ok := controllers.KindOf(u.GroupVersionKind().Group, u.GetKind())
	if !ok {
		return verdict, informative(message)
	}
	if kind.Static != nil && kind.Static(u.Object) {
		return verdict, ""
	}
	ready, found := controllers.FindCondition(u.Object, "Ready")
	if found && verdict != Terminating {
		message = controllers.Shorten(ready.Message)
		if ready.Status == "False" {
			verdict = Failed
		}
	}
	return verdict, informative(message)
}

// informative removes kstatus messages that only repeat that the object is ready.
func informative(message string) string {
	switch message {
	case "Resource is current", "Resource is always ready", "Pod is Ready", "PVC is Bound":
		return ""
	default:
		return message
	}
}

func restarts(o map[string]any) *int {
	total := 0
	for _, container := range containers(o) {
		count, _, _ := unstructured.NestedInt64(container, "restartCount")
		total += int(count)
	}
	return &total
}

// troubleOf returns the first container that cannot start, with the reason, which pod conditions do
// not contain.
func troubleOf(o map[string]any) string {
	for _, container := range containers(o) {
		name, _, _ := unstructured.NestedString(container, "name")
		for _, state := range []string{"waiting", "terminated"} {
			reason, _, _ := unstructured.NestedString(container, "state", state, "reason")
			message, _, _ := unstructured.NestedString(container, "state", state, "message")
			switch reason {
			case "", "ContainerCreating", "PodInitializing", "Completed":
				continue
			}
			if message != "" {
				message = ": " + message
			}
			return "container " + name + ": " + reason + message
		}
	}
	return ""
}

func containers(o map[string]any) []map[string]any {
	var all []map[string]any
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(o, "status", field)
		for _, item := range list {
			if m, ok := item.(map[string]any); ok {
				all = append(all, m)
			}
		}
	}
	return all
}

func claims(o map[string]any, set string) []string {
	var prefixes []string
	templates, _, _ := unstructured.NestedSlice(o, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		if m, ok := template.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(m, "metadata", "name")
			prefixes = append(prefixes, name+"-"+set)
		}
	}
	return prefixes
}

// wholeNumbers returns a copy with int64 in place of integral float64 numbers: encoding/json
// decodes every number as float64, and kstatus expects int64. It does not change the original,
// which may be in use concurrently.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[key] = wholeNumbers(value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, value := range v {
			list[i] = wholeNumbers(value)
		}
		return list
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return v
}
