package e2e_test

func driftFailures() []failure {
	edit := func(f *fixture) {
		f.shell.run("kubectl", "-n", f.namespace, "set", "image", "deployment/web", "web=example.com/web:2")
		f.shell.run("kubectl", "-n", f.namespace, "scale", "deployment", "web", "--replicas=2")
	}
	done := func(*fixture) {}
	const differs = "Deployment/${NS}/web drifted"
	raised := func(f *fixture) {
		f.shell.run("kubectl", "-n", f.namespace, "patch", "resourcequota", "few", "--type=merge", `-p={"spec":{"hard":{"pods":"9"}}}`)
		f.shell.run("kubectl", "-n", f.namespace, "delete", "replicaset", "--all") // its back-off is too long by now
		waitReady(f)
	}
	fails := map[string]string{"flux diff kustomization app -n ${NS}": differs}
	files := map[string]string{"web.yaml": web("1"), "settings.yaml": plainMap}
	says := []string{"2 fields differ from what Kustomization/${NS}/app has applied: changed by kubectl", "flux reconcile kustomization app -n ${NS}"}
	const encrypted = "password: ENC[AES256_GCM,data:MXfyyQ==,iv:0hVVQ1jDkHkyUVdcA2Dp1fYYp9pB9iP6Y5uIw9kAGYs=,tag:W9HbT/Cok1ZdJpaVb7pB4Q==,type:str]\nsops:\n    mac: ENC[AES256_GCM,data:MXfyyQ==,iv:0hVVQ1jDkHkyUVdcA2Dp1fYYp9pB9iP6Y5uIw9kAGYs=,tag:W9HbT/Cok1ZdJpaVb7pB4Q==,type:str]\n    version: 3.10.0\n"
	return []failure{
		{name: "drift", files: files, then: edit, root: "Deployment/web", code: "drift", says: says, fix: done, fails: fails},
		{name: "drift-object", nightly: true, files: files, then: edit, args: []string{"deployment", "web"}, root: "Deployment/web", code: "drift", says: says, fix: done, fails: fails},
		{
			name: "drift-removed", nightly: true, files: files, root: "ConfigMap/settings", code: "drift", says: []string{"1 field differs"}, fix: done,
			fails: map[string]string{"flux diff kustomization app -n ${NS}": "ConfigMap/${NS}/settings drifted"},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "configmap", "settings", "--type=json", `-p=[{"op":"remove","path":"/data/a"}]`)
			},
		},
		{
			name: "drift-release", nightly: true, args: []string{"helmrelease", "app"}, root: "Deployment/web", code: "drift", fix: done,
			files:   map[string]string{"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/web.yaml": web("1")},
			objects: "${DEFAULT}\n---\n" + patient(chartAt("./cases/drift-release/chart", "")),
			says:    []string{"from what HelmRelease/${NS}/app has applied", "to correct drift automatically, set spec.driftDetection.mode: enabled"},
			then: func(f *fixture) {
				f.shell.run("flux", "wait", "helmrelease", "app", "-n", f.namespace)
				edit(f)
			},
		},
		{
			name: "ciphertext", root: "Secret/values", code: "ciphertext", says: []string{"data.values.yaml", "set spec.decryption of Kustomization/${NS}/app"}, hides: []string{"MXfyyQ"},
			files: map[string]string{"values.yaml": encrypted, "kustomization.yaml": "secretGenerator: [{name: values, files: [values.yaml], options: {disableNameSuffixHash: true}}]\n"},
			fix:   fixed("ciphertext", map[string]string{"values.yaml": "password: none\n"}),
		},
		{
			name: "quota", args: []string{"deployment", "web"}, root: "Deployment/web", code: "quota", files: map[string]string{"web.yaml": web("3")},
			objects: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: \"1\"}}\n---\n${DEFAULT}",
			says:    []string{"1 of 3 pods", "raise the ResourceQuota few in namespace ${NS}"},
			fix:     raised,
		},
		{
			name: "quota-kustomization", nightly: true, root: "Kustomization/app", code: "quota", files: map[string]string{"web.yaml": web("3")},
			objects: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: \"1\"}}\n---\n${DEFAULT}",
			says:    []string{"Deployment/${NS}/web: 1 of 3 pods", "raise the ResourceQuota few in namespace ${NS}"},
			fix:     raised,
		},
	}
}
