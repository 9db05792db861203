package review_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/diff/review"
	"github.com/fluxkit/flux/test/support/testcluster"
)

const (
	workload  = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: app, image: a}]}}"
	otherPods = "selector: {matchLabels: {c: d}}, template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: app, image: a}]}}"
	job       = "template: {spec: {restartPolicy: Never, containers: [{name: app, image: a}]}}"
	claim     = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"
)

func workloadOf(kind, spec string) string {
	return one(kind, "apps/v1", "metadata: {name: "+strings.ToLower(kind)+", namespace: default}\nspec: {"+spec+"}\n")
}

func other(kind, version, name, rest string) string {
	return one(kind, version, "metadata: {name: "+name+", namespace: default}\n"+rest+"\n")
}

func cluster(kind, version, name, rest string) string {
	return one(kind, version, "metadata: {name: "+name+"}\n"+rest+"\n")
}

func crd(kind, scope string) string {
	return cluster("CustomResourceDefinition", "apiextensions.k8s.io/v1", "things.example.com",
		"spec: {group: example.com, scope: "+scope+", names: {kind: "+kind+", plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}")
}

// edits are changes of existing objects. The server decides which are immutable.
var edits = map[string][2]string{
	"deployment selector":       {workloadOf("Deployment", workload), workloadOf("Deployment", otherPods)},
	"deployment pace":           {workloadOf("Deployment", workload), workloadOf("Deployment", "minReadySeconds: 5, "+workload)},
	"replica set selector":      {workloadOf("ReplicaSet", workload), workloadOf("ReplicaSet", otherPods)},
	"daemon set selector":       {workloadOf("DaemonSet", workload), workloadOf("DaemonSet", otherPods)},
	"stateful set selector":     {workloadOf("StatefulSet", workload), workloadOf("StatefulSet", otherPods)},
	"stateful set service":      {workloadOf("StatefulSet", "serviceName: a, "+workload), workloadOf("StatefulSet", "serviceName: b, "+workload)},
	"stateful set management":   {workloadOf("StatefulSet", workload), workloadOf("StatefulSet", "podManagementPolicy: Parallel, "+workload)},
	"stateful set default":      {workloadOf("StatefulSet", workload), workloadOf("StatefulSet", "podManagementPolicy: OrderedReady, "+workload)},
	"stateful set claims":       {workloadOf("StatefulSet", workload), workloadOf("StatefulSet", "volumeClaimTemplates: [{metadata: {name: v}, spec: {"+claim+"}}], "+workload)},
	"stateful set retention":    {workloadOf("StatefulSet", workload), workloadOf("StatefulSet", "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}, "+workload)},
	"job template":              {other("Job", "batch/v1", "a", "spec: {"+job+"}"), other("Job", "batch/v1", "a", "spec: {"+strings.Replace(job, "image: a", "image: b", 1)+"}")},
	"job parallelism":           {other("Job", "batch/v1", "b", "spec: {"+job+"}"), other("Job", "batch/v1", "b", "spec: {parallelism: 2, "+job+"}")},
	"job mode":                  {other("Job", "batch/v1", "c", "spec: {completions: 1, "+job+"}"), other("Job", "batch/v1", "c", "spec: {completions: 1, completionMode: Indexed, "+job+"}")},
	"job default mode":          {other("Job", "batch/v1", "d", "spec: {completions: 1, "+job+"}"), other("Job", "batch/v1", "d", "spec: {completions: 1, completionMode: NonIndexed, "+job+"}")},
	"job failure policy":        {other("Job", "batch/v1", "e", "spec: {"+job+"}"), other("Job", "batch/v1", "e", "spec: {podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {operator: In, values: [42]}}]}, "+job+"}")},
	"claim mode":                {other("PersistentVolumeClaim", "v1", "a", "spec: {"+claim+"}"), other("PersistentVolumeClaim", "v1", "a", "spec: {"+strings.Replace(claim, "Once", "Many", 1)+"}")},
	"claim class":               {other("PersistentVolumeClaim", "v1", "b", "spec: {storageClassName: a, "+claim+"}"), other("PersistentVolumeClaim", "v1", "b", "spec: {storageClassName: b, "+claim+"}")},
	"claim volume mode":         {other("PersistentVolumeClaim", "v1", "c", "spec: {"+claim+"}"), other("PersistentVolumeClaim", "v1", "c", "spec: {volumeMode: Block, "+claim+"}")},
	"claim default volume mode": {other("PersistentVolumeClaim", "v1", "d", "spec: {"+claim+"}"), other("PersistentVolumeClaim", "v1", "d", "spec: {volumeMode: Filesystem, "+claim+"}")},
	"claim selector":            {other("PersistentVolumeClaim", "v1", "e", "spec: {"+claim+"}"), other("PersistentVolumeClaim", "v1", "e", "spec: {selector: {matchLabels: {a: b}}, "+claim+"}")},
	"claim label":               {other("PersistentVolumeClaim", "v1", "f", "spec: {"+claim+"}"), one("PersistentVolumeClaim", "v1", "metadata: {name: f, namespace: default, labels: {a: b}}\nspec: {"+claim+"}\n")},
	"secret type":               {other("Secret", "v1", "a", "type: a"), other("Secret", "v1", "a", "type: b")},
	"secret default type":       {other("Secret", "v1", "b", "data: {a: YQ==}"), other("Secret", "v1", "b", "type: Opaque\ndata: {a: YQ==}")},
	"secret data":               {other("Secret", "v1", "c", "data: {a: YQ==}"), other("Secret", "v1", "c", "data: {a: Yg==}")},
	"immutable secret":          {other("Secret", "v1", "d", "immutable: true\ndata: {a: YQ==}"), other("Secret", "v1", "d", "immutable: true\ndata: {a: Yg==}")},
	"immutable config map":      {other("ConfigMap", "v1", "a", "immutable: true\ndata: {a: a}"), other("ConfigMap", "v1", "a", "immutable: true\ndata: {a: b}")},
	"mutable config map":        {other("ConfigMap", "v1", "b", "data: {a: a}"), other("ConfigMap", "v1", "b", "immutable: true\ndata: {a: b}")},
	"storage parameters":        {cluster("StorageClass", "storage.k8s.io/v1", "a", "provisioner: a"), cluster("StorageClass", "storage.k8s.io/v1", "a", "provisioner: a\nparameters: {a: b}")},
	"storage provisioner":       {cluster("StorageClass", "storage.k8s.io/v1", "b", "provisioner: a"), cluster("StorageClass", "storage.k8s.io/v1", "b", "provisioner: b")},
	"storage reclaim policy":    {cluster("StorageClass", "storage.k8s.io/v1", "c", "provisioner: a"), cluster("StorageClass", "storage.k8s.io/v1", "c", "provisioner: a\nreclaimPolicy: Retain")},
	"storage binding mode":      {cluster("StorageClass", "storage.k8s.io/v1", "d", "provisioner: a"), cluster("StorageClass", "storage.k8s.io/v1", "d", "provisioner: a\nvolumeBindingMode: WaitForFirstConsumer")},
	"storage default policy":    {cluster("StorageClass", "storage.k8s.io/v1", "e", "provisioner: a"), cluster("StorageClass", "storage.k8s.io/v1", "e", "provisioner: a\nreclaimPolicy: Delete")},
	"storage expansion":         {cluster("StorageClass", "storage.k8s.io/v1", "f", "provisioner: a"), cluster("StorageClass", "storage.k8s.io/v1", "f", "provisioner: a\nallowVolumeExpansion: true")},
	"priority":                  {cluster("PriorityClass", "scheduling.k8s.io/v1", "a", "value: 1"), cluster("PriorityClass", "scheduling.k8s.io/v1", "a", "value: 2")},
	"priority preemption":       {cluster("PriorityClass", "scheduling.k8s.io/v1", "b", "value: 1"), cluster("PriorityClass", "scheduling.k8s.io/v1", "b", "value: 1\npreemptionPolicy: Never")},
	"priority description":      {cluster("PriorityClass", "scheduling.k8s.io/v1", "c", "value: 1"), cluster("PriorityClass", "scheduling.k8s.io/v1", "c", "value: 1\ndescription: a")},
	"ingress controller":        {cluster("IngressClass", "networking.k8s.io/v1", "a", "spec: {controller: example.com/a}"), cluster("IngressClass", "networking.k8s.io/v1", "a", "spec: {controller: example.com/b}")},
	"role reference":            {other("RoleBinding", "rbac.authorization.k8s.io/v1", "a", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}"), other("RoleBinding", "rbac.authorization.k8s.io/v1", "a", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}")},
	"cluster role reference":    {cluster("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "a", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}"), cluster("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "a", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}")},
	"crd scope":                 {crd("Thing", "Namespaced"), crd("Thing", "Cluster")},
	"crd kind":                  {crd("Thing", "Namespaced"), crd("Other", "Namespaced")},
	"service selector":          {other("Service", "v1", "a", "spec: {ports: [{port: 80}], selector: {a: b}}"), other("Service", "v1", "a", "spec: {ports: [{port: 80}], selector: {a: c}}")},
}

// TestImmutable compares the rule with the answer of a server to each edit.
func TestImmutable(t *testing.T) {
	t.Parallel()
	c := sandboxes.Acquire(t, testcluster.Whole)
	var present, changed []*unstructured.Unstructured
	names := slices.Sorted(maps.Keys(edits))
	for i, name := range names {
		before, after := object(t, edits[name][0]), object(t, edits[name][1])
		if before.GetKind() != "CustomResourceDefinition" { // its name is that of its kind
			before.SetName(fmt.Sprint("edit-", i))
			after.SetName(before.GetName())
		}
		present, changed = append(present, before), append(changed, after)
	}
	if err := kube.Apply(t.Context(), c.Client, present); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i, name := range names {
		results := compared(t, owner, edits[name][0], edits[name][1])
		review.Apply(results, nil)
		says := slices.ContainsFunc(found(results), func(f string) bool { return strings.HasPrefix(f, "immutable: ") })
		is := immutable(t.Context(), t, c.Client, changed[i])
		if is != says {
			t.Errorf("%s: the server refuses it: %t, the rule finds it: %t", name, is, says)
		}
		if is {
			refused++
		}
	}
	if refused < 20 || refused == len(edits) {
		t.Errorf("the server refuses %d of %d edits", refused, len(edits))
	}
}

// immutable reports whether the server refuses to apply an object.
func immutable(ctx context.Context, t *testing.T, client *kube.Client, o *unstructured.Unstructured) bool {
	t.Helper()
	_, err := kube.DryRun(ctx, client, kube.ResourceFor(o.GroupVersionKind()), o.Object, kube.Applier{Manager: "test", Strict: true})
	if err != nil && !apierrors.IsInvalid(err) {
		t.Fatalf("%s/%s: %v", o.GetKind(), o.GetName(), err)
	}
	return err != nil
}
