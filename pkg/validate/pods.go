package validate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// reference is a reference from a Kubernetes object to another object.
type reference struct {
	id    controllers.ID
	field string
}

// podSpec returns the pod spec field of a kind, or "".
func podSpec(group, kind string) string {
	switch (schema.GroupKind{Group: group, Kind: kind}).String() {
	case "Pod":
		return "spec"
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "ReplicationController":
		return "spec.template.spec"
	case "CronJob.batch":
		return "spec.jobTemplate.spec.template.spec"
	}
	return ""
}

// referencesOf returns the objects that a Kubernetes object refers to.
func referencesOf(id controllers.ID, o map[string]any) []reference {
	r := references{object: o, namespace: id.Namespace}
	if at := podSpec(id.Group, id.Kind); at != "" {
		spec, _ := controllers.Path{at}.Lookup(r.object)
		r.pod(at, spec)
		if account := (controllers.Path{at + ".serviceAccountName"}).String(r.object); account != "default" {
			r.add(controllers.ID{Kind: "ServiceAccount", Namespace: id.Namespace, Name: account}, at+".serviceAccountName")
		}
	}
	switch {
	case id.Group == "autoscaling" && id.Kind == "HorizontalPodAutoscaler":
		group, _, versioned := strings.Cut(r.text("spec.scaleTargetRef.apiVersion"), "/")
		if kind := r.text("spec.scaleTargetRef.kind"); versioned && podSpec(group, kind) != "" {
			r.add(controllers.ID{Group: group, Kind: kind, Namespace: id.Namespace, Name: r.text("spec.scaleTargetRef.name")}, "spec.scaleTargetRef")
		}
	case id.Group == rbac && (id.Kind == "RoleBinding" || id.Kind == "ClusterRoleBinding"):
		role := controllers.ID{Group: rbac, Kind: r.text("roleRef.kind"), Name: r.text("roleRef.name")}
		if role.Kind == "Role" {
			role.Namespace = id.Namespace
		}
		r.add(role, "roleRef")
	case id.Group == "networking.k8s.io" && id.Kind == "Ingress":
		r.backends("spec", r.object["spec"])
	}
	return r.found
}

const rbac = "rbac.authorization.k8s.io"

// references collects references of an object.
type references struct {
	object    map[string]any
	namespace string
	found     []reference
}

func (r *references) text(field string) string { return controllers.Path{field}.String(r.object) }

func (r *references) add(id controllers.ID, field string) {
	if id.Name != "" && !substituted(id.Name) && !substituted(id.Namespace) {
		r.found = append(r.found, reference{id, field})
	}
}

// dataFields maps the pod fields that refer to a ConfigMap or Secret to the kind.
var dataFields = map[string]string{
	"configMapKeyRef": controllers.ConfigMap, "configMapRef": controllers.ConfigMap, "configMap": controllers.ConfigMap,
	"secretKeyRef": controllers.Secret, "secretRef": controllers.Secret, "secret": controllers.Secret,
}

// pod adds the required ConfigMaps and Secrets that a pod spec refers to.
func (r *references) pod(at string, value any) {
	r.each(at, value, func(at, key string, m map[string]any) {
		if kind, ok := dataFields[key]; ok && m["optional"] != true {
			for _, field := range []string{"name", "secretName"} {
				name, _ := m[field].(string)
				r.add(controllers.ID{Kind: kind, Namespace: r.namespace, Name: name}, at)
			}
		}
	})
}

// backends adds the Services of an Ingress.
func (r *references) backends(at string, value any) {
	r.each(at, value, func(at, key string, m map[string]any) {
		if key == "service" {
			name, _ := m["name"].(string)
			r.add(controllers.ID{Kind: "Service", Namespace: r.namespace, Name: name}, at)
		}
	})
}

// each calls visit for each map below a value, in a fixed order.
func (r *references) each(at string, value any, visit func(at, key string, m map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if below, ok := value[key].(map[string]any); ok {
				visit(at+"."+key, key, below)
			}
			r.each(at+"."+key, value[key], visit)
		}
	case []any:
		for i, below := range value {
			r.each(at+"["+strconv.Itoa(i)+"]", below, visit)
		}
	}
}
