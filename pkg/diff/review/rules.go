package review

import (
	"fmt"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// Rules returns all rules, sorted by topic: data, availability, reconciliation, permissions,
// versions, and deletions of any kind.
func Rules() []Rule { return rules }

var rules = []Rule{
	{
		ID: "namespace-removal", Effect: "is deleted with everything in it",
		Explanation: "Kubernetes deletes all objects in the namespace, including objects that Flux does not manage.",
		find:        removed("", "Namespace"),
	},
	{
		ID: "crd-removal", Effect: "is deleted with every object of its kind",
		Explanation: "Kubernetes deletes all custom resources with their CustomResourceDefinition, in all namespaces.",
		find:        removed("apiextensions.k8s.io", "CustomResourceDefinition"),
	},
	{
		ID: "persistent-volume-claim", Effect: "is deleted, with its data unless the volume is retained",
		Explanation: "With the reclaim policy Delete, the default of dynamically provisioned volumes, deleting the claim also deletes the volume.",
		find:        removed("", "PersistentVolumeClaim"),
	},
	{
		ID: "stateful-set-removal", Effect: "is deleted, which stops a stateful workload",
		Explanation: "The pods are deleted. The PersistentVolumeClaims of volumeClaimTemplates stay unless persistentVolumeClaimRetentionPolicy.whenDeleted is Delete.",
		find:        removed("apps", "StatefulSet"),
	},
	{
		ID: "load-balancer-removal", Effect: "releases its external address",
		Explanation: "The load balancer is deleted with the Service, or when the type is no longer LoadBalancer. A new load balancer usually has a different address.",
		find:        loadBalancer,
	},
	{
		ID: diff.DangerImmutable, Effect: "changes an immutable field",
		Explanation: "The apply fails until the object is deleted. If the Kustomization or the object has force enabled, the controller deletes and recreates the object.",
		find:        immutable,
	},
	{
		ID: diff.DangerLost, Effect: "is deleted and cannot be created again",
		Explanation: "The controller deletes the object to recreate it, but the API server rejects the new one.",
		find:        marked(diff.DangerLost),
	},
	{
		ID: "unset-variable", Effect: "has a variable without a value, which Flux 2.9 and later reject",
		Explanation: "kustomize-controller applies no object of the Kustomization, unless its feature gate " +
			controllers.StrictSubstitutionGate + " is disabled. Set the variable in spec.postBuild, give it a default, or escape it as $${NAME}.",
		find: func(c change) []string { return c.Unset },
	},
	{
		ID: "scaled-to-zero", Effect: "is scaled to zero replicas",
		Explanation: "The workload stops.",
		find:        scaledToZero,
	},
	{
		ID: "prune-enabled", Effect: "starts to delete objects that are no longer in the source",
		Explanation: "With spec.prune, the next reconciliation deletes the objects that were removed from the source while pruning was disabled.",
		find:        switched("kustomize.toolkit.fluxcd.io", controllers.Kustomization, "spec.prune", "false", "true"),
	},
	{
		ID: "prune-disabled", Effect: "stops deleting objects that are removed from the source",
		Explanation: "Without spec.prune, removed objects stay on the cluster, unmanaged.",
		find:        switched("kustomize.toolkit.fluxcd.io", controllers.Kustomization, "spec.prune", "true", "false"),
	},
	{
		ID: "orphaned", Effect: "stays on the cluster without an owner",
		Explanation: "The object is removed from the source, and nothing prunes it. Delete it manually if it is no longer needed.",
		find: func(c change) []string {
			return when(c.Orphaned)
		},
	},
	{
		ID: "suspended", Effect: "is suspended: changes are no longer applied",
		Explanation: "The controller ignores changes and drift until the object is resumed.",
		find:        func(c change) []string { return when(c.after != nil && suspended(c.after) && !suspended(c.before)) },
	},
	{
		ID: "resumed", Effect: "is resumed: all changes since the suspension are applied",
		Explanation: "The diff shows only the changes between the two revisions, not earlier changes that were not applied during the suspension.",
		find: func(c change) []string {
			return when(c.before != nil && c.after != nil && suspended(c.before) && !suspended(c.after))
		},
	},
	{
		ID: "change-while-suspended", Effect: "is suspended: its changes are not applied",
		Explanation: "The changes take effect on the cluster when the object is resumed.",
		Notice:      true,
		owner:       func(r *diff.Result) []string { return when(r.Suspended && r.Different()) },
	},
	{
		ID: "suspended-ancestor", Effect: "is defined by a suspended Kustomization",
		Explanation: "A suspended Kustomization does not apply changes, including changes to Kustomizations and HelmReleases. They take effect when it is resumed.",
		owner:       withheld,
	},
	{
		ID: "service-account-removal", Effect: "is reconciled with the permissions of the controller",
		Explanation: "Without spec.serviceAccountName, the controller applies the objects with its own permissions, cluster-admin by default.",
		find:        serviceAccountRemoved,
	},
	{
		ID: "cluster-admin", Effect: "grants cluster-admin",
		Explanation: "The subject gets all permissions in the cluster or, with a RoleBinding, in its namespace.",
		state:       of(rbac, adminSubjects, "ClusterRoleBinding", "RoleBinding"),
	},
	{
		ID: "wildcard-permissions", Effect: "grants all verbs on all resources",
		Explanation: "The role is equivalent to cluster-admin in its scope.",
		state:       of(rbac, wildcardRules, "ClusterRole", "Role"),
	},
	{
		ID: "privileged", Effect: "runs privileged",
		Explanation: "A privileged container has access to all devices of its node, and thereby to all pods on it.",
		state:       privilegedContainers,
	},
	{
		ID: "host-path", Effect: "mounts a directory of the node",
		Explanation: "A hostPath volume gives access to the file system of the node.",
		state:       hostPaths,
	},
	{
		ID: "host-namespace", Effect: "shares a namespace of the node",
		Explanation: "With hostNetwork, hostPID or hostIPC, the pod sees the network or the processes of its node.",
		state:       hostNamespaces,
	},
	{
		ID: "major-image-update", Effect: "updates an image to another major version",
		Explanation: "Under semantic versioning, a new major version may be incompatible. Read its release notes.",
		find:        majorImages,
	},
	{
		ID: "major-chart-update", Effect: "updates a chart or an artifact to another major version",
		Explanation: "Under semantic versioning, a new major version may be incompatible. Read its release notes.",
		find:        majorCharts,
	},
	{
		ID: "prune", Effect: "is deleted",
		Explanation: "The object is no longer in the source, and its owner prunes it.",
		Notice:      true,
		find:        func(c change) []string { return when(c.Action == diff.Pruned) },
	},
}

// when returns one occurrence without detail if the condition is true.
func when(occurs bool) []string {
	if occurs {
		return []string{""}
	}
	return nil
}

// marked finds a danger that the diff itself has determined.
func marked(id string) func(change) []string {
	return func(c change) []string {
		for _, d := range c.Dangers {
			if d.Rule == id {
				return []string{d.Detail}
			}
		}
		return nil
	}
}

// gone reports whether an object is deleted, even if it is created again.
func (c change) gone() bool { return c.Action == diff.Pruned || c.Action == diff.Recreated }

func (c change) is(group, kind string) bool { return c.Object.Group == group && c.Object.Kind == kind }

func removed(group, kind string) func(change) []string {
	return func(c change) []string { return when(c.gone() && c.is(group, kind)) }
}

// withheld finds an owner whose definition differs and is not applied.
func withheld(r *diff.Result) []string {
	if r.Withheld == nil || !r.Different() {
		return nil
	}
	kept := map[diff.Action]string{diff.Created: "it is not created", diff.Changed: "its new spec is not applied", diff.Pruned: "it is not deleted"}
	return []string{fmt.Sprintf("%s until %s is resumed", kept[r.Withheld.Action], r.Withheld.By)}
}

func loadBalancer(c change) []string {
	if !c.is("", "Service") || field(c.before, "spec.type") != "LoadBalancer" {
		return nil
	}
	becomes := field(c.after, "spec.type")
	switch {
	case c.gone():
		return when(true)
	case c.Action == diff.Changed && c.after != nil && becomes != "LoadBalancer":
		if becomes == "" {
			becomes = "ClusterIP"
		}
		return []string{"spec.type becomes " + becomes}
	}
	return nil
}

// switched finds a boolean field that changes. A missing field is false.
func switched(group, kind, path, from, to string) func(change) []string {
	value := func(o controllers.Object) string {
		if field(o, path) == "true" {
			return "true"
		}
		return "false"
	}
	return func(c change) []string {
		return when(c.is(group, kind) && c.before != nil && c.after != nil && value(c.before) == from && value(c.after) == to)
	}
}

func suspended(o controllers.Object) bool {
	k, ok := controllers.KindOf(groupOf(o), field(o, "kind"))
	return ok && k.Suspension.Is(o)
}

func scaledToZero(c change) []string {
	before, was := replicas(c.before)
	after, is := replicas(c.after)
	if !was { // the default of all workloads
		before = 1
	}
	return when(c.before != nil && is && before > 0 && after == 0)
}

// replicas returns the number of replicas of a workload.
func replicas(o controllers.Object) (float64, bool) {
	v, _ := controllers.Path{"spec.replicas"}.Lookup(o)
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// serviceAccountRemoved finds an owner that is no longer impersonated.
func serviceAccountRemoved(c change) []string {
	row, ok := controllers.KindOf(c.Object.Group, c.Object.Kind)
	if !ok || !row.Applies() || c.before == nil || c.after == nil {
		return nil
	}
	name := field(c.before, "spec.serviceAccountName")
	if name == "" || field(c.after, "spec.serviceAccountName") != "" {
		return nil
	}
	return []string{fmt.Sprintf("spec.serviceAccountName %s is removed", name)}
}
