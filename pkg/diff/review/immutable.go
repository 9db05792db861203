package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/diff"
)

// immutableField is a field that the API server does not change after the creation of an object.
type immutableField struct {
	pointer string
	// standard is the value of a missing field, or unknown if it depends on the cluster.
	standard string
}

// unknown marks a default that the cluster configures.
const unknown = "?"

// immutableFields lists the immutable fields by group and kind. A test compares them with a
// server.
var immutableFields = map[string][]immutableField{
	"apps/Deployment": {{pointer: "/spec/selector"}},
	"apps/ReplicaSet": {{pointer: "/spec/selector"}},
	"apps/DaemonSet":  {{pointer: "/spec/selector"}},
	"apps/StatefulSet": {
		{pointer: "/spec/selector"}, {pointer: "/spec/serviceName"}, {"/spec/podManagementPolicy", "OrderedReady"}, {pointer: "/spec/volumeClaimTemplates"},
	},
	"batch/Job": {
		{pointer: "/spec/selector"}, {pointer: "/spec/template"}, {"/spec/completionMode", "NonIndexed"}, {pointer: "/spec/podFailurePolicy"},
	},
	"/PersistentVolumeClaim": {
		{pointer: "/spec/accessModes"}, {"/spec/storageClassName", unknown}, {pointer: "/spec/selector"}, {"/spec/volumeMode", "Filesystem"},
	},
	"/Secret": {{"/type", "Opaque"}},
	"storage.k8s.io/StorageClass": {
		{pointer: "/provisioner"}, {pointer: "/parameters"}, {"/reclaimPolicy", "Delete"}, {"/volumeBindingMode", "Immediate"},
	},
	"scheduling.k8s.io/PriorityClass":              {{pointer: "/value"}, {"/preemptionPolicy", "PreemptLowerPriority"}},
	"networking.k8s.io/IngressClass":               {{pointer: "/spec/controller"}},
	"rbac.authorization.k8s.io/RoleBinding":        {{pointer: "/roleRef"}},
	"rbac.authorization.k8s.io/ClusterRoleBinding": {{pointer: "/roleRef"}},
	"apiextensions.k8s.io/CustomResourceDefinition": {
		{pointer: "/spec/scope"}, {pointer: "/spec/names/kind"},
	},
}

// frozen lists the fields that immutable: true protects in a ConfigMap or Secret.
var frozen = []immutableField{{pointer: "/data"}, {pointer: "/binaryData"}, {pointer: "/stringData"}, {"/immutable", "false"}}

// immutable finds an immutable field that changes. In a comparison with a cluster, the dry run has
// already detected it.
func immutable(c change) []string {
	if !c.builds {
		return marked(diff.DangerImmutable)(c)
	}
	if c.Action != diff.Changed || c.Hook != "" { // Helm never updates a hook
		return nil
	}
	fields := immutableFields[c.Object.Group+"/"+c.Object.Kind]
	if field(c.before, "immutable") == "true" && (c.Object.IsConfigMap() || c.Object.IsSecret()) {
		fields = append(slices.Clone(fields), frozen...)
	}
	if c.is("batch", "Job") && field(c.before, "spec.suspend") == "true" { // a part of the template may change
		fields = slices.DeleteFunc(slices.Clone(fields), func(f immutableField) bool { return f.pointer == "/spec/template" })
	}
	var found []string
	for _, f := range c.Fields {
		for _, known := range fields {
			if name := strings.ReplaceAll(known.pointer[1:], "/", "."); known.changes(f) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

// changes reports whether f changes the field, including by setting or omitting a value other than
// the default.
func (i immutableField) changes(f diff.Field) bool {
	switch {
	case strings.HasPrefix(f.Pointer, i.pointer+"/"):
		return true
	case f.Pointer != i.pointer:
		return false
	case f.Op != diff.Added && f.Op != diff.Removed:
		return true
	}
	value := f.After
	if f.Op == diff.Removed {
		value = f.Before
	}
	return i.standard != unknown && (i.standard == "" || fmt.Sprint(value) != i.standard)
}
