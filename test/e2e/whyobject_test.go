package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhyObjects(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), objectProblems(), false)
}

func TestNightlyWhyObjects(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), objectProblems(), true)
}

// objectProblems lists problems of single objects: deleted, drifted, contested.
func objectProblems() []failure {
	return slices.Concat(withoutReconcile(objectFailures()), driftFailures(), deletionFailures(), ownerFailures())
}

func objectFailures() []failure {
	yes := map[string]string{"settings.yaml": plainMap}
	return []failure{
		{
			name: "deleted", files: yes, args: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "deleted", says: []string{"flux reconcile kustomization app -n ${NS}"},
			then: func(f *fixture) { f.shell.run("kubectl", "-n", f.namespace, "delete", "configmap", "settings") },
		},
		{
			name: "pruned", files: map[string]string{"settings.yaml": plainMap, "more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"},
			args: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "pruned", says: []string{"add it to the source again"},
			then: func(f *fixture) {
				f.git.commit("Take the settings out", map[string]string{"cases/pruned/settings.yaml": ""})
				f.shell.run("flux", "reconcile", "kustomization", "app", "-n", f.namespace, "--with-source")
			},
		},
		{
			name: "disabled", files: yes, args: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "disabled", says: []string{"Flux does not apply it"},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "annotate", "configmap", "settings", "kustomize.toolkit.fluxcd.io/reconcile=disabled")
			},
		},
		{
			name: "unmanaged", files: yes, args: []string{"configmap", "mine"}, root: "ConfigMap/mine", code: "unmanaged", says: []string{"add it to a source"},
			then: func(f *fixture) { f.shell.run("kubectl", "-n", f.namespace, "create", "configmap", "mine") },
		},
		{
			name: "finalizer", files: yes, root: "Kustomization/app", code: "deleting", says: []string{"example.com/hold"},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "kustomization", "app", "--type=json", `-p=[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]`)
				f.shell.run("kubectl", "-n", f.namespace, "delete", "kustomization", "app", "--wait=false")
				f.t.Cleanup(func() {
					_, _, _ = f.shell.try("kubectl", "-n", f.namespace, "patch", "kustomization", "app", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
				})
			},
		},
	}
}

func deletionFailures() []failure {
	files := map[string]string{"settings.yaml": plainMap}
	hold := func(f *fixture, kind, name string) {
		f.shell.run("kubectl", "-n", f.namespace, "patch", kind, name, "--type=json", `-p=[{"op":"add","path":"/metadata/finalizers","value":["finalizers.fluxcd.io","example.com/hold"]}]`)
	}
	return []failure{
		{
			name: "removed", nightly: true, files: files, root: "ConfigMap/settings", code: "deleted",
			says: []string{"deleted outside Flux", "flux reconcile kustomization app -n ${NS}"}, fix: func(*fixture) {},
			then: func(f *fixture) { f.shell.run("kubectl", "-n", f.namespace, "delete", "configmap", "settings") },
		},
		{
			name: "pruned-by-stuck", nightly: true, files: files, args: []string{"configmap", "settings"}, root: "Kustomization/app", code: "deleting",
			says: []string{"example.com/hold"}, never: []string{"brings it back", "flux reconcile"},
			then: func(f *fixture) {
				hold(f, "kustomization", "app")
				f.shell.run("kubectl", "-n", f.namespace, "delete", "kustomization", "app", "--wait=false")
				f.shell.run("kubectl", "-n", f.namespace, "wait", "--for=delete", "configmap/settings", waitFlag)
			},
		},
		{
			name: "terminating-map", nightly: true, files: files, args: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "deleting",
			says: []string{"example.com/hold", "check that a controller of example.com is running"}, never: []string{`"finalizers":null`},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"metadata":{"finalizers":["example.com/hold"]}}`)
				f.shell.run("kubectl", "-n", f.namespace, "delete", "configmap", "settings", "--wait=false")
			},
			fix: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
				f.shell.run("flux", "reconcile", "kustomization", "app", "-n", f.namespace)
			},
		},
		{
			name: "terminating-inventory", nightly: true, files: files, root: "ConfigMap/settings", code: "deleting", says: []string{"example.com/hold"},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"metadata":{"finalizers":["example.com/hold"]}}`)
				f.shell.run("kubectl", "-n", f.namespace, "delete", "configmap", "settings", "--wait=false")
			},
		},
	}
}

func ownerFailures() []failure {
	second := applied("other", "GitRepository", "app", "cases/contested", "")
	return []failure{
		{
			name: "contested", files: map[string]string{"settings.yaml": plainMap}, root: "ConfigMap/settings", code: "contested", objects: "${DEFAULT}\n---\n" + second,
			says: []string{"Kustomization/${NS}/app", "Kustomization/${NS}/other", "kustomize.toolkit.fluxcd.io/prune: disabled"}, never: []string{"helm.sh/"},
			fix: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "kustomization", "other", "--type=merge", `-p={"spec":{"prune":false}}`)
				f.shell.run("kubectl", "-n", f.namespace, "delete", "kustomization", "other")
				f.shell.run("flux", "reconcile", "kustomization", "app", "-n", f.namespace)
			},
		},
		{
			name: "contested-release", nightly: true, args: []string{"helmrelease", "app"}, root: "ConfigMap/settings", code: "contested",
			files: map[string]string{
				"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/settings.yaml": plainMap,
				"more/settings.yaml": plainMap,
			},
			objects: "${DEFAULT}\n---\n" + patient(chartAt("./cases/contested-release/chart", "")),
			says: []string{
				"source of HelmRelease/${NS}/app, add the annotation helm.sh/resource-policy: keep",
				"source of Kustomization/${NS}/other, add the annotation kustomize.toolkit.fluxcd.io/prune: disabled",
			},
			then: func(f *fixture) {
				f.shell.run("flux", "wait", "helmrelease", "app", "-n", f.namespace)
				more := strings.ReplaceAll(applied("other", "GitRepository", "app", "cases/contested-release/more", ""), "${NS}", f.namespace)
				f.seed(more)
			},
		},
	}
}
