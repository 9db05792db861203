package dryrun

import (
	"reflect"
	"testing"

	"github.com/fluxcd/pkg/ssa/normalize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestNormalizeAsTheController checks that the library of the controller produces the same objects.
func TestNormalizeAsTheController(t *testing.T) {
	n, err := newNormalizer()
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range []string{
		// Fields that the type does not have, quantities, ports without a protocol.
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, creationTimestamp: "2020-01-01T00:00:00Z"}, status: {replicas: 3},
		  spec: {replicas: 3, unknown: 1, template: {spec: {containers: [{name: web, resources: {limits: {cpu: 1000m, memory: 1024Mi}},
		  ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]}]}}}}`,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {template: {spec: {containers: [{name: db, ports: [{containerPort: 5432}]}]}}}}`,
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {template: {spec: {containers: [{name: agent, ports: [{containerPort: 1}]}]}}}}`,
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs}, spec: {template: {spec: {containers: [{name: c, ports: [{containerPort: 1}]}]}}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {template: {spec: {containers: [{name: c, ports: [{containerPort: 1}]}]}}}}`,
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron}, spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {containers: [{name: c, ports: [{containerPort: 1}]}]}}}}}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: c, ports: [{containerPort: 1}]}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80, targetPort: http}, {port: 53, protocol: UDP}]}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: YQ==, b: Yg==}, stringData: {b: new, c: text}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {c: text}}`,
		// Objects that do not match their type are kept as they are.
		`{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: "not base64!"}, stringData: {b: new}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {number: 1}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: []}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: apps}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {kind: Role, name: r}, subjects: []}`,
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}`,
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {rules: [{host: a.example.com}]}}`,
		`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: p}, spec: {minAvailable: 1}}`,
		`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: example.com/fast, more: 1}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {resources: {requests: {storage: 1024Mi}}}}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: webs.example.com}, spec: {group: example.com}, status: {storedVersions: [v1]}}`,
		`{apiVersion: example.com/v1, kind: Web, metadata: {name: web}, spec: {cpu: 1000m}, status: {ready: true}}`,
	} {
		var mine, theirs unstructured.Unstructured
		for _, o := range []*unstructured.Unstructured{&mine, &theirs} {
			if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.normalize(&mine); err != nil {
			t.Fatal(err)
		}
		if err := normalize.UnstructuredList([]*unstructured.Unstructured{&theirs}); err != nil {
			t.Fatal(err)
		}
		// The library sets an unset timestamp to null.
		unstructured.RemoveNestedField(theirs.Object, "metadata", "creationTimestamp")
		if !reflect.DeepEqual(mine.Object, theirs.Object) {
			t.Errorf("%s/%s:\n%v, the controller has\n%v", mine.GetKind(), mine.GetName(), mine.Object, theirs.Object)
		}
	}
}
