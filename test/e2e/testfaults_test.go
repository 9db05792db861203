package e2e_test

import (
	"fmt"
	"testing"

	"github.com/fluxkit/flux/pkg/testrun/assert"
)

const (
	ksApps  = "{kind: Kustomization, namespace: flux-system, name: apps}"
	ksInfra = "{kind: Kustomization, namespace: flux-system, name: infra}"
	gitHome = "{kind: GitRepository, namespace: flux-system, name: flux-system}"
	webRef  = "{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}"
)

const (
	scanned = "{kind: ImageRepository, namespace: flux-system, name: scanned}"
	scan    = "apply: [{apiVersion: image.toolkit.fluxcd.io/v1, kind: ImageRepository, metadata: {name: scanned, namespace: flux-system}, spec: {image: REGISTRY/web, insecure: true, interval: 10m}}]"
)

// hookedRelease is a commit of a release whose hook runs a Job before the installation. Changed values retry the release.
const (
	hooked        = "{kind: HelmRelease, namespace: default, name: hooked}"
	hookedRelease = `commit: {files: {charts/hooked/Chart.yaml: "apiVersion: v2\nname: hooked\nversion: 0.1.0\n",` +
		`charts/hooked/templates/job.yaml: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: hooked, annotations: {helm.sh/hook: 'pre-upgrade, pre-install'}}\nspec:\n  backoffLimit: 0\n` +
		`  template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: migrate}]}}\n",` +
		`infra/hooked.yaml: "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: hooked, namespace: default}\nspec:\n  interval: 10m\n` +
		`  chart: {spec: {chart: ./charts/hooked, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n"}}`
)

// settingsOf returns a commit that changes the settings, and the objects that are applied then.
func settingsOf(color string) (commit, expect string) {
	return "commit: {files: {infra/settings.yaml: \"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: settings, namespace: default}\\ndata: {color: " + color + "}\\n\"}}",
		"value: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, expression: object.data.color, equals: " + color + "}"
}

// imageOf returns a commit that changes the image of the Deployment.
func imageOf(tag string) string {
	return "commit: {files: {apps/web.yaml: \"apiVersion: apps/v1\\nkind: Deployment\\nmetadata: {name: web, namespace: default}\\nspec:\\n  replicas: 1\\n  selector: {matchLabels: {app: web}}\\n  template:\\n    metadata: {labels: {app: web}}\\n    spec:\\n      containers: [{name: app, image: 'ghcr.io/stefanprodan/podinfo:" + tag + "'}]\\n\"}}"
}

// faultTest is a fault, the expected failure during the fault, and the recovery.
type faultTest struct {
	name                       string
	nightly                    bool
	fault, meanwhile, recovery string
}

// faultTests returns a test for each fault.
func faultTests() []faultTest {
	const recovers = "ready: {object: " + gitHome + "}}, {ready: {object: " + ksInfra + "}"
	toRed, red := settingsOf("red")
	toGreen, green := settingsOf("green")
	toBlack, black := settingsOf("black")
	toWhite, white := settingsOf("white")
	toGray, gray := settingsOf("gray")
	toPink, pink := settingsOf("pink")
	toCyan, cyan := settingsOf("cyan")
	toBrown, brown := settingsOf("brown")
	gitWhy := func(message string) string {
		return "why: {object: " + gitHome + ", rootCause: " + gitHome + ", message: '" + message + "'}"
	}
	return []faultTest{
		{
			name: "leaderless", nightly: true, fault: "controller: {name: kustomize-controller, state: leaderless}",
			meanwhile: toCyan + ", expect: [{event: {object: " + gitHome + ", reason: NewArtifact}}]", recovery: cyan,
		},
		{
			name: "api-server", nightly: true, fault: "apiServer: {state: restarted}",
			meanwhile: toBrown + ", expect: [{" + brown + "}]", recovery: recovers,
		},
		{
			name: "git-down", fault: "server: {name: git, down: true}",
			meanwhile: toRed + ", expect: [{" + gitWhy("EOF|reset|closed|unable to (clone|list)") + "}]",
			recovery:  recovers + "}, {order: [" + gitHome + ", " + ksInfra + "]}, {" + red,
		},
		{
			name: "git-slow", nightly: true, fault: "server: {name: git, delay: 3s}",
			meanwhile: toGreen + ", expect: [{" + green + "}]", recovery: recovers,
		},
		{
			name: "git-down-for", nightly: true, fault: "server: {name: git, down: true, for: 5s}",
			meanwhile: toBlack + ", expect: [{ready: {object: " + gitHome + "}}]", recovery: black,
		},
		{
			name: "credentials", nightly: true, fault: "server: {name: git, status: 401}",
			meanwhile: toWhite + ", expect: [{" + gitWhy("authentication|[Cc]redentials") + "}]", recovery: recovers + "}, {" + white,
		},
		{
			name: "killed", fault: "controller: {name: kustomize-controller, state: killed}",
			meanwhile: toGray + ", expect: [{" + gray + "}]", recovery: recovers,
		},
		{
			name: "registry", nightly: true, fault: "server: {name: registry, status: 429}",
			meanwhile: scan + ", expect: [{why: {object: " + scanned + ", rootCause: " + scanned + ", message: 'TOOMANYREQUESTS|rate|many requests'}}]",
			recovery:  "ready: {object: " + scanned + "}",
		},
		{
			name: "webhook", fault: "webhook: {resource: configmaps, namespace: default, deny: settings are frozen}",
			meanwhile: toPink + ", expect: [{why: {object: " + ksApps + ", rootCause: " + ksInfra + ", message: settings are frozen}}]",
			recovery:  "order: [" + ksInfra + ", " + ksApps + "]}, {" + pink,
		},
		{
			name: "pods", fault: "pods: {namespace: default, state: crash-loop}",
			meanwhile: imageOf("6.9.1") + ", expect: [{why: {object: " + ksApps + ", message: 'web'}}]", recovery: "ready: {object: " + ksApps + "}",
		},
		{
			name: "pull-errors", nightly: true, fault: "pods: {namespace: default, state: image-pull-error}",
			meanwhile: imageOf("6.9.2") + ", expect: [{why: {object: " + ksApps + ", message: 'podinfo:6.9.2'}}]", recovery: "ready: {object: " + ksApps + "}",
		},
		{
			name: "pods-by-label", nightly: true, fault: "pods: {namespace: default, labels: {app: web}, state: crash-loop}",
			meanwhile: imageOf("6.9.4") + ", expect: [{why: {object: " + ksApps + ", message: 'web'}}]", recovery: "ready: {object: " + ksApps + "}",
		},
		{ // the near miss: no pod has the label
			name: "pods-by-other-label", nightly: true, fault: "pods: {namespace: default, labels: {app: api}, state: crash-loop}",
			meanwhile: imageOf("6.9.5") + ", expect: [{ready: {object: " + ksApps + "}}]", recovery: "ready: {object: " + ksApps + "}",
		},
		{
			name: "pods-by-hook", nightly: true, fault: "pods: {namespace: default, hook: pre-install, state: fail}",
			meanwhile: hookedRelease + ", expect: [{why: {object: " + hooked + ", message: 'Job/default/hooked'}}, {exists: " + webRef + "}]",
			recovery:  "ready: {object: " + hooked + "}}], patch: [{object: " + hooked + ", merge: {spec: {values: {again: true}}}",
		},
		{
			name: "quota", nightly: true, fault: "quota: {namespace: default, hard: {pods: '0'}}",
			meanwhile: imageOf("6.9.3") + ", expect: [{why: {object: " + ksApps + ", message: '[Qq]uota'}}]", recovery: "ready: {object: " + ksApps + "}",
		},
	}
}

// TestFaults runs a fault of each kind.
func TestFaults(t *testing.T) {
	t.Parallel()
	runFaults(t, false)
}

func TestNightlyFaults(t *testing.T) {
	t.Parallel()
	runFaults(t, true)
}

func runFaults(t *testing.T, nightly bool) {
	t.Helper()
	var texts []string
	for _, f := range faultTests() {
		if f.nightly == nightly {
			texts = append(texts, fmt.Sprintf(testHead, f.name)+"  - {name: meanwhile, faults: [{"+f.fault+"}], "+f.meanwhile+"}\n  - {name: recovery, expect: [{"+f.recovery+"}]}\n")
		}
	}
	for _, r := range runTests(t, tested, texts...) {
		t.Log(r.Outcome, r, r.Seconds)
		if r.Outcome != assert.Passed {
			t.Error(r)
		}
	}
}
