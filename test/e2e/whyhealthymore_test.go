package e2e_test

import "strings"

// manifest returns an object with the name app.
func manifest(apiVersion, kind, rest string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: app}\n" + rest + "\n"
}

// podsOfApp is the remaining manifest of a workload whose pods are healthy.
const podsOfApp = `selector: {matchLabels: {app: app}}, template: {metadata: {labels: {app: app}}, spec: {containers: [{name: app, image: "example.com/app:1"}]}}`

// healthyWorkloads lists Kustomizations with workloads that change, or that seem incomplete.
func healthyWorkloads() []failure {
	kubectl := func(args ...string) func(*fixture) {
		return func(f *fixture) { f.shell.run("kubectl", append([]string{"-n", f.namespace}, args...)...) }
	}
	deployed := map[string]string{"web.yaml": web("2")}
	one := func(text string) map[string]string { return map[string]string{"app.yaml": text} }
	waits := kustomizationWith("wait: true")
	cases := []failure{
		{name: "restarting", files: deployed, then: kubectl("rollout", "restart", "deployment", "web")},
		{name: "restarted", files: deployed, then: func(f *fixture) {
			kubectl("rollout", "restart", "deployment", "web")(f)
			kubectl("rollout", "status", "deployment/web", waitFlag)(f)
		}},
		{name: "scaling", files: deployed, then: kubectl("scale", "deployment", "web", "--replicas=4")},
		{name: "pod-deleted", files: deployed, then: kubectl("delete", "pod", "-l", "app=web", "--wait=false")},
		{name: "stopped", files: one(manifest("apps/v1", "Deployment", "spec: {replicas: 0, "+podsOfApp+"}")), objects: waits},
		{name: "daemons", files: one(manifest("apps/v1", "DaemonSet", "spec: {"+podsOfApp+"}"))},
		{name: "stateful", files: one(manifest("apps/v1", "StatefulSet", "spec: {replicas: 2, "+podsOfApp+"}"))},
		{name: "cron", files: one(manifest("batch/v1", "CronJob", `spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "example.com/app:1"}]}}}}}`)), objects: waits},
		{name: "cron-suspended", files: one(manifest("batch/v1", "CronJob", `spec: {suspend: true, schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "example.com/app:1"}]}}}}}`))},
		{name: "job-suspended", files: one(manifest("batch/v1", "Job", `spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: app, image: "example.com/app:1"}]}}}`))},
		{name: "budget", files: map[string]string{"web.yaml": web("2"), "pdb.yaml": manifest("policy/v1", "PodDisruptionBudget", "spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}")}},
		{name: "headless", files: map[string]string{"web.yaml": web("1"), "service.yaml": service("app", "clusterIP: None")}, objects: waits},
		{name: "external-name", files: one(manifest("v1", "Service", "spec: {type: ExternalName, externalName: example.com}")), objects: waits},
		{name: "no-selector", files: one(manifest("v1", "Service", "spec: {ports: [{port: 80}]}"))},
		{name: "ingress", files: map[string]string{"web.yaml": web("1"), "service.yaml": service("app", "ports: [{port: 80}]"), "ingress.yaml": manifest("networking.k8s.io/v1", "Ingress", "spec: {defaultBackend: {service: {name: app, port: {number: 80}}}}")}},
		{name: "unready-wanted", files: map[string]string{"web.yaml": web("1"), "policy.yaml": manifest("networking.k8s.io/v1", "NetworkPolicy", "spec: {podSelector: {}}")}},
		{name: "immutable-data", files: one(manifest("v1", "ConfigMap", "immutable: true\ndata: {a: b}"))},
		{name: "pod-kept", files: one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}\ndata: {a: b}\n")},
		{name: "merged", files: one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, annotations: {kustomize.toolkit.fluxcd.io/ssa: Merge}}\ndata: {a: b}\n"), then: kubectl("patch", "configmap", "app", "--type=merge", `-p={"data":{"c":"d"}}`)},
	}
	return nightly(cases)
}

// healthySettings lists Kustomizations whose settings refer to optional or existing objects.
func healthySettings() []failure {
	files := map[string]string{"settings.yaml": plainMap, "web.yaml": troubled(`""`)}
	values := manifest("v1", "ConfigMap", "data: {color: blue}")
	var cases []failure
	for name, spec := range map[string]string{
		"optional-values": `postBuild: {substituteFrom: [{kind: ConfigMap, name: gone, optional: true}, {kind: Secret, name: gone, optional: true}]}`,
		"known-values":    `postBuild: {substituteFrom: [{kind: ConfigMap, name: app}], substitute: {size: small}}`,
		"health-check":    `healthChecks: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: "${NS}"}]`,
		"waiting":         `wait: true`,
		"metadata":        `commonMetadata: {labels: {team: a}}`,
		"prefix":          `namePrefix: a-`,
		"patched":         `patches: [{patch: '[{"op": "add", "path": "/metadata/annotations/a", "value": "b"}]', target: {kind: ConfigMap}}]`,
		"images":          `images: [{name: example.com/web, newTag: "2"}]`,
		"optional-parts":  `components: [../gone], ignoreMissingComponents: true`,
		"kept-on-delete":  `deletionPolicy: Orphan`,
	} {
		cases = append(cases, failure{name: name, files: files, objects: kustomizationWith(spec) + "---\n" + values})
	}
	return nightly(cases)
}

// healthySources lists sources, notifications and releases that have no result yet, or that are not used.
func healthySources() []failure {
	files := map[string]string{"settings.yaml": plainMap}
	alert := "---\napiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Provider\nmetadata: {name: chat}\nspec: {type: generic, address: \"http://127.0.0.1:1/chat\"}\n---\n" +
		"apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: all}\nspec: {providerRef: {name: chat}, eventSources: [{kind: Kustomization, name: \"*\"}]}\n"
	receiver := "---\napiVersion: notification.toolkit.fluxcd.io/v1\nkind: Receiver\nmetadata: {name: hook}\nspec: {type: generic, secretRef: {name: hook}, resources: [{kind: GitRepository, name: app}]}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: hook}\nstringData: {token: fixed}\n"
	charts := map[string]string{"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/web.yaml": troubled(`""`)}
	release := func(name, more string) failure {
		return failure{name: name, args: []string{"helmrelease", "app"}, files: charts, objects: patient(chartAt("./cases/"+name+"/chart", once+more))}
	}
	return nightly([]failure{
		{name: "alerted", files: files, objects: kustomizationWith("force: false") + alert},
		{name: "received", files: files, objects: kustomizationWith("force: false") + receiver},
		{name: "ignoring", files: files, objects: strings.Replace(kustomizationWith("force: false"), "ref: {branch: main}", `ref: {branch: main}, ignore: "*.md"`, 1)},
		release("release-optional", "  valuesFrom: [{kind: ConfigMap, name: gone, optional: true}]\n"),
		release("release-drift", "  driftDetection: {mode: warn}\n"),
		release("release-ignores", "  driftDetection: {mode: enabled, ignore: [{paths: [/spec/replicas]}]}\n"),
		release("release-patched", "  postRenderers: [{kustomize: {patches: [{patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations/a\", \"value\": \"b\"}]', target: {kind: Deployment}}]}}]\n"),
		release("release-named", "  releaseName: other\n"),
		release("release-keeps", "  maxHistory: 1\n"),
	})
}

// nightly marks cases that run in the nightly tier only.
func nightly(cases []failure) []failure {
	for i := range cases {
		cases[i].nightly = true
	}
	return cases
}
