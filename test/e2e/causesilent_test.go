package e2e_test

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCauseSilent checks resources that are Ready and still have a problem, and
// similar resources that are healthy.
func TestCauseSilent(t *testing.T) {
	t.Parallel()
	s, address := newRows(t)
	twins := slices.Concat(inventoryTwins(), releaseTwins())
	files := map[string]string{"cases/status/settings.yaml": plainMap}
	for _, twin := range twins {
		for name, content := range twin.files {
			files[path.Join("cases", twin.name, name)] = content
		}
	}
	s.rows(t, "cause-", address, slices.Concat(notificationRows(), driftRows(), deletionRows(), ownerRows(), releaseRows()), files)
	for _, twin := range twins {
		t.Run("healthy/"+twin.name, func(t *testing.T) {
			t.Parallel()
			one := s.inNamespace(t, "silent-"+twin.name)
			one.begins(twin, address)
			one.staysHealthy(twin)
		})
	}
	t.Run("status", func(t *testing.T) {
		t.Parallel()
		s.inNamespace(t, "silent-status").statusOfMissing(address)
	})
	t.Run("revisions", func(t *testing.T) {
		t.Parallel()
		s.inNamespace(t, "silent-revisions").revisionsOfHealthy(address)
	})
}

// staysHealthy checks a twin from its creation on: no answer may have a problem, and
// after the twin is ready and changed as given, it must be healthy.
func (s *story) staysHealthy(twin causeRow) {
	s.Helper()
	healthy := func(v verdict, code int) (finding, bool) {
		if len(v.Cases) > 0 {
			s.Errorf("a healthy resource has a problem: %s: %s %s", v.Cases[0].Root.Code, v.Cases[0].Root.Message, v.Cases[0].Root.Details)
		}
		return finding{}, v.Healthy && code == 0 || s.Failed()
	}
	s.untilWhy(twin.ask, healthy)
	if twin.then == nil {
		return
	}
	twin.then(s)
	stdout, stderr, err := s.try("flux", slices.Concat([]string{"why", "-n", s.namespace, "-o", "json"}, twin.ask)...)
	var v verdict
	if decoded := json.Unmarshal([]byte(stdout), &v); decoded != nil || !v.Healthy || exitCode(err) != 0 {
		s.Errorf("the resource is not healthy afterwards: %v\n%s%s", err, stdout, stderr)
	}
}

// ready waits for the Kustomization app of the story.
func (s *story) ready() {
	s.Helper()
	s.run("flux", "wait", "kustomization", "app", "-n", s.namespace, "--timeout=2m")
}

func notificationRows() []causeRow {
	alert := func(name, provider string) string {
		return "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: " + name + "}\nspec: {providerRef: {name: " + provider + "}, eventSources: [{kind: Kustomization, name: '*'}]}\n"
	}
	const provider = "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Provider\nmetadata: {name: chat}\nspec: {type: generic, timeout: 2s, address: \"http://127.0.0.1:1/hooks/not-for-output\"}\n"
	return []causeRow{
		{
			name: "provider-missing", ask: []string{"alert", "app"}, root: "Provider/chat", code: "missing", says: []string{"it does not exist"},
			given:   map[string]func(*story) string{"<type>": value("slack")},
			objects: alert("app", "chat"),
			fix: func(s *story) {
				s.statusSays("alert app", "Provider/"+s.namespace+"/chat: it does not exist")
				if err := s.cluster.Seed(s.Context(), []byte(provider), s.namespace); err != nil {
					s.Fatal(err)
				}
			},
		},
		{
			name: "provider-unreachable", ask: []string{"alert", "app"}, root: "Provider/chat", code: "notification-failed",
			files: map[string]string{"settings.yaml": plainMap}, objects: "${DEFAULT}\n---\n" + alert("app", "chat") + "---\n" + provider,
			says: []string{"the last notification of Alert/${NS}/app was not delivered", "check spec.address"}, hides: []string{"not-for-output"},
			// Events from before the correction of the Provider are not evidence.
			fix: func(s *story) {
				s.statusSays("alert app", "the last notification of Alert/"+s.namespace+"/app was not delivered")
				s.run("kubectl", "-n", s.namespace, "patch", "provider", "chat", "--type=merge", `-p={"spec":{"address":"`+s.url+`"}}`)
			},
		},
	}
}

// statusSays checks that flux status finds the problem that flux why has found.
func (s *story) statusSays(object, problem string) {
	s.Helper()
	stdout, stderr, err := s.try("flux", slices.Concat([]string{"status", "-n", s.namespace}, strings.Fields(object))...)
	if exitCode(err) != 1 || !strings.Contains(stdout, problem) {
		s.Errorf("flux status %s ends with %v and without %q:\n%s%s", object, err, problem, stdout, stderr)
	}
}

// web returns a Deployment with the given number of pods.
func web(replicas string) string {
	return strings.Replace(troubled(`""`), "spec:\n", "spec:\n  replicas: "+replicas+"\n", 1)
}

func driftRows() []causeRow {
	edit := func(s *story) {
		s.run("kubectl", "-n", s.namespace, "set", "image", "deployment/web", "web=example.com/web:2")
		s.run("kubectl", "-n", s.namespace, "scale", "deployment", "web", "--replicas=2")
	}
	done := func(*story) {}
	const differs = "Deployment/${NS}/web drifted"
	raised := func(s *story) {
		s.run("kubectl", "-n", s.namespace, "patch", "resourcequota", "few", "--type=merge", `-p={"spec":{"hard":{"pods":"9"}}}`)
		s.run("kubectl", "-n", s.namespace, "delete", "replicaset", "--all") // its back-off is long by now
		s.ready()
	}
	fails := map[string]string{"flux diff kustomization app -n ${NS}": differs}
	files := map[string]string{"web.yaml": web("1"), "settings.yaml": plainMap}
	says := []string{"2 fields differ from what Kustomization/${NS}/app has applied: changed by kubectl", "flux reconcile kustomization app -n ${NS}"}
	const encrypted = "password: ENC[AES256_GCM,data:MXfyyQ==,iv:0hVVQ1jDkHkyUVdcA2Dp1fYYp9pB9iP6Y5uIw9kAGYs=,tag:W9HbT/Cok1ZdJpaVb7pB4Q==,type:str]\nsops:\n    mac: ENC[AES256_GCM,data:MXfyyQ==,iv:0hVVQ1jDkHkyUVdcA2Dp1fYYp9pB9iP6Y5uIw9kAGYs=,tag:W9HbT/Cok1ZdJpaVb7pB4Q==,type:str]\n    version: 3.10.0\n"
	return []causeRow{
		{name: "drift", files: files, then: edit, root: "Deployment/web", code: "drift", says: says, fix: done, fails: fails},
		{name: "drift-object", files: files, then: edit, ask: []string{"deployment", "web"}, root: "Deployment/web", code: "drift", says: says, fix: done, fails: fails},
		{
			name: "drift-removed", files: files, root: "ConfigMap/settings", code: "drift", says: []string{"1 field differs"}, fix: done,
			fails: map[string]string{"flux diff kustomization app -n ${NS}": "ConfigMap/${NS}/settings drifted"},
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "configmap", "settings", "--type=json", `-p=[{"op":"remove","path":"/data/a"}]`)
			},
		},
		{
			name: "drift-release", ask: []string{"helmrelease", "app"}, root: "Deployment/web", code: "drift", fix: done,
			files:   map[string]string{"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/web.yaml": web("1")},
			objects: "${DEFAULT}\n---\n" + chartAt("./cases/drift-release/chart", ""),
			says:    []string{"from what HelmRelease/${NS}/app has applied", "to correct drift automatically, set spec.driftDetection.mode: enabled"},
			then: func(s *story) {
				s.run("flux", "wait", "helmrelease", "app", "-n", s.namespace, "--timeout=2m")
				edit(s)
			},
		},
		{
			name: "ciphertext", root: "Secret/values", code: "ciphertext", says: []string{"data.values.yaml", "set spec.decryption of Kustomization/${NS}/app"}, hides: []string{"MXfyyQ"},
			files: map[string]string{"values.yaml": encrypted, "kustomization.yaml": "secretGenerator: [{name: values, files: [values.yaml], options: {disableNameSuffixHash: true}}]\n"},
			fix:   fixed("ciphertext", map[string]string{"values.yaml": "password: none\n"}),
		},
		{
			name: "quota", ask: []string{"deployment", "web"}, root: "Deployment/web", code: "quota", files: map[string]string{"web.yaml": web("3")},
			objects: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: \"1\"}}\n---\n${DEFAULT}",
			says:    []string{"1 of 3 pods", "raise the ResourceQuota few in namespace ${NS}"},
			fix:     raised,
		},
		{
			name: "quota-kustomization", root: "Kustomization/app", code: "quota", files: map[string]string{"web.yaml": web("3")},
			objects: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: \"1\"}}\n---\n${DEFAULT}",
			says:    []string{"Deployment/${NS}/web: 1 of 3 pods", "raise the ResourceQuota few in namespace ${NS}"},
			fix:     raised,
		},
	}
}

func deletionRows() []causeRow {
	files := map[string]string{"settings.yaml": plainMap}
	hold := func(s *story, kind, name string) {
		s.run("kubectl", "-n", s.namespace, "patch", kind, name, "--type=json", `-p=[{"op":"add","path":"/metadata/finalizers","value":["finalizers.fluxcd.io","example.com/hold"]}]`)
	}
	return []causeRow{
		{
			name: "removed", files: files, root: "ConfigMap/settings", code: "deleted",
			says: []string{"deleted outside Flux", "flux reconcile kustomization app -n ${NS}"}, fix: func(*story) {},
			then: func(s *story) { s.run("kubectl", "-n", s.namespace, "delete", "configmap", "settings") },
		},
		{
			name: "pruned-by-stuck", files: files, ask: []string{"configmap", "settings"}, root: "Kustomization/app", code: "deleting",
			says: []string{"example.com/hold"}, never: []string{"brings it back", "flux reconcile"},
			then: func(s *story) {
				hold(s, "kustomization", "app")
				s.run("kubectl", "-n", s.namespace, "delete", "kustomization", "app", "--wait=false")
				s.run("kubectl", "-n", s.namespace, "wait", "--for=delete", "configmap/settings", "--timeout=60s")
			},
		},
		{
			name: "terminating-map", files: files, ask: []string{"configmap", "settings"}, root: "ConfigMap/settings", code: "deleting",
			says: []string{"example.com/hold", "check that a controller of example.com runs"}, never: []string{`"finalizers":null`},
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"metadata":{"finalizers":["example.com/hold"]}}`)
				s.run("kubectl", "-n", s.namespace, "delete", "configmap", "settings", "--wait=false")
			},
			fix: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"metadata":{"finalizers":null}}`)
				s.run("flux", "reconcile", "kustomization", "app", "-n", s.namespace)
			},
		},
		{
			name: "terminating-inventory", files: files, root: "ConfigMap/settings", code: "deleting", says: []string{"example.com/hold"},
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"metadata":{"finalizers":["example.com/hold"]}}`)
				s.run("kubectl", "-n", s.namespace, "delete", "configmap", "settings", "--wait=false")
			},
		},
	}
}

func ownerRows() []causeRow {
	second := applied("other", "GitRepository", "app", "cases/contested", "")
	return []causeRow{
		{
			name: "contested", files: map[string]string{"settings.yaml": plainMap}, root: "ConfigMap/settings", code: "contested", objects: "${DEFAULT}\n---\n" + second,
			says: []string{"Kustomization/${NS}/app", "Kustomization/${NS}/other", "kustomize.toolkit.fluxcd.io/prune: disabled"}, never: []string{"helm.sh/"},
			fix: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "kustomization", "other", "--type=merge", `-p={"spec":{"prune":false}}`)
				s.run("kubectl", "-n", s.namespace, "delete", "kustomization", "other")
				s.run("flux", "reconcile", "kustomization", "app", "-n", s.namespace)
			},
		},
		{
			name: "contested-release", ask: []string{"helmrelease", "app"}, root: "ConfigMap/settings", code: "contested",
			files: map[string]string{
				"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/settings.yaml": plainMap,
				"more/settings.yaml": plainMap,
			},
			objects: "${DEFAULT}\n---\n" + chartAt("./cases/contested-release/chart", ""),
			says: []string{
				"source of HelmRelease/${NS}/app, set its annotation helm.sh/resource-policy: keep",
				"source of Kustomization/${NS}/other, set its annotation kustomize.toolkit.fluxcd.io/prune: disabled",
			},
			then: func(s *story) {
				s.run("flux", "wait", "helmrelease", "app", "-n", s.namespace, "--timeout=2m")
				more := strings.ReplaceAll(applied("other", "GitRepository", "app", "cases/contested-release/more", ""), "${NS}", s.namespace)
				if err := s.cluster.Seed(s.Context(), []byte(more), s.namespace); err != nil {
					s.Fatal(err)
				}
			},
		},
	}
}

const (
	testPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: app-test, annotations: {helm.sh/hook: test, sandbox.fluxkit.dev/state: STATE}}\n" +
		"spec: {restartPolicy: Never, containers: [{name: test, image: \"example.com/test:1\"}]}\n"
	hookJob = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: \"post-install,post-upgrade\"}}\n" +
		"spec: {backoffLimit: 0, template: {metadata: {annotations: {sandbox.fluxkit.dev/state: STATE}}, spec: {restartPolicy: Never, containers: [{name: migrate, image: \"example.com/migrate:1\"}]}}}\n"
	once = "  install: {strategy: {name: RemediateOnFailure}, remediation: {retries: 0}}\n" +
		"  upgrade: {strategy: {name: RemediateOnFailure}, remediation: {retries: 0, remediateLastFailure: true, strategy: rollback}}\n"
)

// releaseRows are releases whose Ready condition does not have the reason of the
// failure.
func releaseRows() []causeRow {
	ask := []string{"helmrelease", "app"}
	patient := func(s *story) {
		s.run("kubectl", "-n", s.namespace, "patch", "helmrelease", "app", "--type=merge", `-p={"spec":{"timeout":"1m"}}`)
	}
	row := func(name, template, manifest, state, healthy, more string) causeRow {
		files := map[string]string{"chart/Chart.yaml": strings.Replace(chart, "1.2.3", "2.0.0", 1), "chart/templates/" + template: strings.ReplaceAll(manifest, "STATE", healthy)}
		return causeRow{
			name: name, ask: ask, root: "HelmRelease/app", code: "health", objects: chartAt("./cases/"+name+"/chart", once+more),
			files: map[string]string{"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/" + template: strings.ReplaceAll(manifest, "STATE", state)},
			fix: func(s *story) {
				fixed(name, files)(s)
				patient(s)
			},
		}
	}
	test := row("helm-test", "test.yaml", testPod, "image-pull-error", "complete", "  test: {enable: true}\n")
	test.says = []string{`Pod/${NS}/app-test: the image "example.com/test:1" cannot be pulled`, "flux reconcile helmrelease app -n ${NS} --with-source --reset"}
	hook := row("helm-hook", "job.yaml", hookJob, "fail", `""`, "")
	hook.says = []string{"Job/${NS}/migrate: container migrate of pod migrate-", "exit code 1"}
	crash := row("helm-crash", "web.yaml", troubled("STATE"), "crash-loop", `""`, "")
	crash.says = []string{"Deployment/${NS}/web: container web of pod web-", "exit code 1"}
	rollback := row("helm-rollback", "web.yaml", troubled("{{ .Values.state | quote }}"), "", "", "")
	rollback.files["chart/values.yaml"] = "state: \"\"\n"
	rollback.objects = "${DEFAULT}\n---\n" + rollback.objects
	rollback.says = []string{"Deployment/${NS}/web: pod web-", "since deleted: Failed: Error: "}
	rollback.then = func(s *story) {
		s.run("flux", "wait", "helmrelease", "app", "-n", s.namespace, "--timeout=2m")
		s.run("kubectl", "-n", s.namespace, "patch", "helmrelease", "app", "--type=merge", `-p={"spec":{"values":{"state":"image-pull-error"}}}`)
	}
	rollback.fix = func(s *story) {
		patient(s)
		s.run("kubectl", "-n", s.namespace, "patch", "helmrelease", "app", "--type=merge", `-p={"spec":{"values":{"state":""}}}`)
	}
	return []causeRow{test, hook, crash, rollback}
}

// inventoryTwins are healthy Kustomizations that resemble the rows.
func inventoryTwins() []causeRow {
	deployed := map[string]string{"web.yaml": troubled(`""`), "settings.yaml": plainMap}
	const notes = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {howto: \"SOPS writes ENC[AES256_GCM,data:…] and a key sops: into files\"}\n"
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: once, image: \"example.com/once:1\"}]}}}\n"
	return []causeRow{
		{
			name: "autoscaled", files: deployed,
			then: func(s *story) { s.run("kubectl", "-n", s.namespace, "scale", "deployment", "web", "--replicas=3") },
		},
		{
			name: "autoscaled-object", files: deployed, ask: []string{"kustomization", "app"},
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "scale", "deployment", "web", "--replicas=3")
				s.run("kubectl", "-n", s.namespace, "rollout", "status", "deployment/web", "--timeout=60s")
				s.run("flux", "why", "deployment", "web", "-n", s.namespace)
			},
		},
		{
			name: "annotated", files: deployed,
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "annotate", "--field-manager=controller-of-others", "configmap", "settings", "example.com/seen=yes")
			},
		},
		{
			name: "kept", files: map[string]string{"settings.yaml": strings.Replace(plainMap, "{name: settings}", "{name: settings, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}}", 1)},
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"data":{"a":"c"}}`)
			},
		},
		{name: "notes", files: map[string]string{"notes.yaml": notes}},
		{
			name: "job", files: map[string]string{"job.yaml": job, "settings.yaml": plainMap}, objects: kustomizationWith("force: false"),
			then: func(s *story) {
				s.run("kubectl", "-n", s.namespace, "wait", "--for=delete", "job/once", "--timeout=60s")
			},
		},
		{name: "enough", files: map[string]string{"web.yaml": web("3")}, objects: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: enough}\nspec: {hard: {pods: \"3\"}}\n---\n${DEFAULT}"},
		{name: "apart", files: map[string]string{"app/settings.yaml": plainMap, "more/notes.yaml": notes}, objects: strings.Replace(kustomizationWith("force: false"), "${PATH}", "${PATH}/app", 1) + "---\n" + applied("other", "GitRepository", "app", "cases/apart/more", "")},
		{name: "slow", files: map[string]string{"web.yaml": troubled("slow-start")}},
	}
}

func releaseTwins() []causeRow {
	files := map[string]string{
		"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/web.yaml": troubled(`""`),
		"chart/templates/test.yaml": strings.ReplaceAll(testPod, "STATE", "complete"), "chart/templates/job.yaml": strings.ReplaceAll(hookJob, "STATE", `""`),
	}
	objects := strings.ReplaceAll(chartAt("./cases/helm-fine/chart", once+"  test: {enable: true}\n"), "timeout: 10s", "timeout: 1m")
	return []causeRow{{name: "helm-fine", ask: []string{"helmrelease", "app"}, files: files, objects: objects}}
}

// statusOfMissing deletes an object of an inventory: status fails like why.
func (s *story) statusOfMissing(address string) {
	s.begins(causeRow{name: "status"}, address)
	s.ready()
	s.run("flux", "status", "app", "-n", s.namespace)
	s.run("kubectl", "-n", s.namespace, "delete", "configmap", "settings")
	stdout, stderr, err := s.try("flux", "status", "app", "-n", s.namespace)
	if exitCode(err) != 1 || !strings.Contains(stdout, "deleted outside Flux") {
		s.Errorf("status of a Kustomization without its ConfigMap ends with %v:\n%s%s", err, stdout, stderr)
	}
}

// revisionsOfHealthy pushes a commit that is not fetched for a day.
func (s *story) revisionsOfHealthy(address string) {
	s.begins(causeRow{name: "status", objects: strings.ReplaceAll(whyDefault, "interval: 1h, url", "interval: 24h, url")}, address)
	s.ready()
	var before, after struct {
		Healthy bool
		Facts   struct {
			AppliedRevision, FetchedRevision string
			NextFetch                        time.Time
			Source                           struct{ Kind, Name string }
		}
	}
	ask := []string{"why", "kustomization", "app", "-n", s.namespace, "-o", "json"}
	if err := json.Unmarshal([]byte(s.run("flux", ask...)), &before); err != nil {
		s.Fatal(err)
	}
	s.commit("Change an unused file", map[string]string{"unused.txt": s.namespace})
	if err := json.Unmarshal([]byte(s.run("flux", ask...)), &after); err != nil {
		s.Fatal(err)
	}
	f := after.Facts
	if !after.Healthy || f.AppliedRevision == "" || f.AppliedRevision != f.FetchedRevision || f != before.Facts || f.Source.Kind != "GitRepository" {
		s.Errorf("the revisions are %+v, and were %+v", after, before)
	}
	if in := time.Until(f.NextFetch); in < 23*time.Hour || in > 24*time.Hour {
		s.Errorf("the next fetch is in %s", in)
	}
	if text := s.run("flux", "why", "kustomization", "app", "-n", s.namespace); !strings.Contains(text, "Fetch now: flux reconcile kustomization app -n "+s.namespace+" --with-source") {
		s.Errorf("why does not print how to fetch:\n%s", text)
	}
}
