package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testsops"
)

// TestWhyHealthy checks resources that resemble those with problems.
func TestWhyHealthy(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	f.git.commit("Run what is healthy", map[string]string{"cases/status/settings.yaml": plainMap})
	runHealthy(f, inTier(slices.Concat(healthyKustomizations(), encryptedSecrets(t), healthyReleases()), false))
	t.Run("status", func(t *testing.T) {
		t.Parallel()
		statusOfMissing(f.as(t).in(f.namespace + "-status"))
	})
	t.Run("revisions", func(t *testing.T) {
		t.Parallel()
		revisionsOfHealthy(f.as(t).in(f.namespace + "-revisions"))
	})
}

func TestNightlyWhyHealthy(t *testing.T) {
	t.Parallel()
	runHealthy(newShared(t), inTier(slices.Concat(healthyKustomizations(), encryptedSecrets(t), healthyReleases(), healthyWorkloads(), healthySettings(), healthySources()), true))
}

// runHealthy checks that flux why finds no problem in each case.
func runHealthy(f *fixture, cases []failure) {
	f.t.Helper()
	pushFiles(f, cases)
	for _, c := range cases {
		f.t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			part := f.as(t).in(f.namespace + "-" + c.name)
			reportFailure(part)
			created := time.Now()
			c.prepare(part)
			staysHealthy(part, c, created)
		})
	}
}

// staysHealthy checks a twin from its creation: no result may contain a problem, and
// after the twin has become ready and was changed, it must be healthy. A controller of a busy
// machine may need more than the minute after which why reports it.
func staysHealthy(f *fixture, twin failure, created time.Time) {
	f.t.Helper()
	healthy := func(v verdict, code int) (finding, bool) {
		late := time.Since(created) >= time.Minute
		if len(v.Cases) > 0 && (v.Cases[0].Root.Code != "unreconciled" || !late) {
			f.t.Errorf("a healthy resource has a problem: %s: %s %s", v.Cases[0].Root.Code, v.Cases[0].Root.Message, v.Cases[0].Root.Details)
		}
		return finding{}, v.Healthy && code == 0 || f.t.Failed()
	}
	untilWhy(f, twin.args, healthy)
	if twin.then == nil {
		return
	}
	twin.then(f)
	stdout, stderr, err := f.shell.try("flux", slices.Concat([]string{"why", "-n", f.namespace, "-o", "json"}, twin.args)...)
	var v verdict
	if decoded := json.Unmarshal([]byte(stdout), &v); decoded != nil || !v.Healthy || exitCode(err) != 0 {
		f.t.Errorf("the resource is not healthy afterwards: %v\n%s%s", err, stdout, stderr)
	}
}

// healthyKustomizations lists healthy Kustomizations that resemble those with problems.
func healthyKustomizations() []failure {
	deployed := map[string]string{"web.yaml": troubled(`""`), "settings.yaml": plainMap}
	const notes = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {howto: \"SOPS writes ENC[AES256_GCM,data:…] and a key sops: into files\"}\n"
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: once, image: \"example.com/once:1\"}]}}}\n"
	return []failure{
		{
			name: "autoscaled", files: deployed,
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "scale", "deployment", "web", "--replicas=3")
			},
		},
		{
			name: "autoscaled-object", nightly: true, files: deployed, args: []string{"kustomization", "app"},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "scale", "deployment", "web", "--replicas=3")
				f.shell.run("kubectl", "-n", f.namespace, "rollout", "status", "deployment/web", waitFlag)
				f.shell.run("flux", "why", "deployment", "web", "-n", f.namespace)
			},
		},
		{
			name: "annotated", nightly: true, files: deployed,
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "annotate", "--field-manager=controller-of-others", "configmap", "settings", "example.com/seen=yes")
			},
		},
		{
			name: "kept", nightly: true, files: map[string]string{"settings.yaml": strings.Replace(plainMap, "{name: settings}", "{name: settings, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}}", 1)},
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "configmap", "settings", "--type=merge", `-p={"data":{"a":"c"}}`)
			},
		},
		{name: "notes", nightly: true, files: map[string]string{"notes.yaml": notes}},
		{
			name: "job", files: map[string]string{"job.yaml": job, "settings.yaml": plainMap}, objects: kustomizationWith("force: false"),
			then: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "wait", "--for=delete", "job/once", waitFlag)
			},
		},
		{name: "enough", nightly: true, files: map[string]string{"web.yaml": web("3")}, objects: "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: enough}\nspec: {hard: {pods: \"3\"}}\n---\n${DEFAULT}"},
		{name: "apart", nightly: true, files: map[string]string{"app/settings.yaml": plainMap, "more/notes.yaml": notes}, objects: strings.Replace(kustomizationWith("force: false"), "${PATH}", "${PATH}/app", 1) + "---\n" + applied("other", "GitRepository", "app", "cases/apart/more", "")},
		{name: "slow", files: map[string]string{"web.yaml": troubled("slow-start")}},
	}
}

// encryptedSecrets is a Kustomization that decrypts a Secret.
func encryptedSecrets(t *testing.T) []failure {
	t.Helper()
	keys, err := testsops.New()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := keys.Secret("token", "password", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	return []failure{{
		name: "decrypted", files: map[string]string{"token.yaml": secret},
		objects: kustomizationWith("decryption: {provider: sops, secretRef: {name: keys}}") +
			"\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {age.agekey: \"" + keys.Identity.String() + "\"}\n",
	}}
}

func healthyReleases() []failure {
	files := map[string]string{
		"kustomization.yaml": "resources: []\n", "chart/Chart.yaml": chart, "chart/templates/web.yaml": troubled(`""`),
		"chart/templates/test.yaml": strings.ReplaceAll(testPod, "STATE", "complete"), "chart/templates/job.yaml": strings.ReplaceAll(hookJob, "STATE", `""`),
	}
	objects := patient(chartAt("./cases/helm-fine/chart", once+"  test: {enable: true}\n"))
	return []failure{{name: "helm-fine", nightly: true, args: []string{"helmrelease", "app"}, files: files, objects: objects}}
}

// statusOfMissing deletes an object in an inventory: status fails like why.
func statusOfMissing(f *fixture) {
	failure{name: "status"}.prepare(f)
	waitReady(f)
	f.shell.run("flux", "status", "app", "-n", f.namespace)
	f.shell.run("kubectl", "-n", f.namespace, "delete", "configmap", "settings")
	stdout, stderr, err := f.shell.try("flux", "status", "app", "-n", f.namespace)
	if exitCode(err) != 1 || !strings.Contains(stdout, "deleted outside Flux") {
		f.t.Errorf("status of a Kustomization without its ConfigMap ends with %v:\n%s%s", err, stdout, stderr)
	}
}

// revisionsOfHealthy pushes a commit that is not fetched for a day.
func revisionsOfHealthy(f *fixture) {
	failure{name: "status", objects: strings.ReplaceAll(whyDefault, "interval: 1h, url", "interval: 24h, url")}.prepare(f)
	waitReady(f)
	var before, after struct {
		Healthy bool
		Facts   struct {
			AppliedRevision, FetchedRevision string
			NextFetch                        time.Time
			Source                           struct{ Kind, Name string }
		}
	}
	args := []string{"why", "kustomization", "app", "-n", f.namespace, "-o", "json"}
	if err := json.Unmarshal([]byte(f.shell.run("flux", args...)), &before); err != nil {
		f.t.Fatal(err)
	}
	f.git.commit("Change an unused file", map[string]string{"unused.txt": f.namespace})
	if err := json.Unmarshal([]byte(f.shell.run("flux", args...)), &after); err != nil {
		f.t.Fatal(err)
	}
	facts := after.Facts
	if !after.Healthy || facts.AppliedRevision == "" || facts.AppliedRevision != facts.FetchedRevision || facts != before.Facts || facts.Source.Kind != "GitRepository" {
		f.t.Errorf("the revisions are %+v, and were %+v", after, before)
	}
	if in := time.Until(facts.NextFetch); in < 23*time.Hour || in > 24*time.Hour {
		f.t.Errorf("the next fetch is in %s", in)
	}
	if text := f.shell.run("flux", "why", "kustomization", "app", "-n", f.namespace); !strings.Contains(text, "Fetch now: flux reconcile kustomization app -n "+f.namespace+" --with-source") {
		f.t.Errorf("why does not print how to fetch:\n%s", text)
	}
}
