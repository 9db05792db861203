package e2e_test

import (
	"strings"
	"testing"
)

// TestNightlyWhyCluster breaks objects that all namespaces share: nodes, API services, CustomResourceDefinitions and
// controllers.
func TestNightlyWhyCluster(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	f.shell.run("flux", "install")
	for _, c := range clusterFailures() {
		t.Run(c.name, func(t *testing.T) {
			part := f.as(t).in("cluster-" + c.name)
			pushFiles(part, []failure{c})
			c.prepare(part)
			waitReady(part)
			c.then(part)
			c.find(part)
			if c.fix != nil {
				c.fix(part)
			}
		})
	}
}

// clusterFailures lists healthy Kustomizations, and how the cluster breaks them.
func clusterFailures() []failure {
	const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.removed.example.com}
spec:
  group: removed.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
	return []failure{
		{
			name: "cordoned", files: map[string]string{"web.yaml": troubled(`""`)},
			then: func(f *fixture) {
				f.shell.run("kubectl", "cordon", "sandbox")
				f.shell.run("kubectl", "-n", f.namespace, "delete", "pod", "-l", "app=web")
			},
			args: []string{"deployment", "web"}, root: "Deployment/web", code: "health", says: []string{"cordoned: sandbox", "kubectl uncordon sandbox"}, never: []string{"fix the workload in the source"},
			fix: func(f *fixture) { f.shell.run("kubectl", "uncordon", "sandbox") },
		},
		{
			name: "removed", files: map[string]string{"crd/crd.yaml": widgets, "app/w.yaml": "apiVersion: removed.example.com/v1\nkind: Widget\nmetadata: {name: w}\n"},
			objects: gitRepository + "---\n" + applied("crds", "GitRepository", "app", "cases/removed/crd", "") + "---\n" +
				applied("app", "GitRepository", "app", "cases/removed/app", "dependsOn: [{name: crds}], suspend: false"),
			then: func(f *fixture) { f.shell.run("kubectl", "delete", "crd", "widgets.removed.example.com") },
			root: "Widget/w", code: "api-missing", says: []string{"its CustomResourceDefinition was deleted"}, never: []string{"corrects it"},
		},
		{
			name: "terminating", files: map[string]string{"doomed.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: doomed}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: doomed}\n"},
			objects: strings.Replace(whyDefault, `targetNamespace: "${NS}", `, "", 1),
			then: func(f *fixture) {
				f.seed("apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1beta1.dead.example.com}\n" +
					"spec: {group: dead.example.com, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: gone, namespace: default}}\n")
				f.shell.run("kubectl", "delete", "namespace", "doomed", "--wait=false")
				f.shell.run("kubectl", "wait", "--for=condition=NamespaceDeletionDiscoveryFailure", "namespace/doomed", waitFlag)
			},
			root: "Namespace/doomed", code: "deleting", says: []string{"kubectl delete apiservice v1beta1.dead.example.com"},
		},
		{
			name: "unreachable", files: map[string]string{"settings.yaml": plainMap},
			then: func(f *fixture) { // as with a wrong --storage-adv-addr, which the sandbox sets itself
				f.shell.run("kubectl", "-n", f.namespace, "patch", "gitrepository", "app", "--subresource=status", "--type=json",
					`-p=[{"op":"replace","path":"/status/artifact/url","value":"http://127.0.0.1:1/x.tar.gz"}]`)
				f.shell.run("kubectl", "-n", f.namespace, "patch", "kustomization", "app", "--type=merge", `-p={"spec":{"force":true}}`)
			},
			// The controller retries the download for minutes, and only its log contains the reason.
			root: "Kustomization/app", code: "progressing", says: []string{"127.0.0.1:1: connect: connection refused"},
		},
		{
			name: "sharded", files: map[string]string{"settings.yaml": plainMap},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", "flux-system", "patch", "deployment", "kustomize-controller", "--type=json",
					`-p=[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--watch-label-selector=!sharding.fluxcd.io/key"}]`)
				f.shell.run("kubectl", "-n", "flux-system", "rollout", "status", "deployment/kustomize-controller", waitFlag)
				f.shell.run("kubectl", "-n", f.namespace, "label", "kustomization", "app", "sharding.fluxcd.io/key=shard2")
				f.shell.run("kubectl", "-n", f.namespace, "patch", "kustomization", "app", "--type=merge", `-p={"spec":{"interval":"2h"}}`)
			},
			root: "Kustomization/app", code: "unwatched", says: []string{"sharding.fluxcd.io/key"},
		},
	}
}
