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

// settingsOf returns a commit that changes the settings, and what is applied then.
func settingsOf(color string) (commit, expect string) {
	return "commit: {files: {infra/settings.yaml: \"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: settings, namespace: default}\\ndata: {color: " + color + "}\\n\"}}",
		"value: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, expression: object.data.color, equals: " + color + "}"
}

// imageOf returns a commit that changes the image of the Deployment.
func imageOf(tag string) string {
	return "commit: {files: {apps/web.yaml: \"apiVersion: apps/v1\\nkind: Deployment\\nmetadata: {name: web, namespace: default}\\nspec:\\n  replicas: 1\\n  selector: {matchLabels: {app: web}}\\n  template:\\n    metadata: {labels: {app: web}}\\n    spec:\\n      containers: [{name: app, image: 'ghcr.io/stefanprodan/podinfo:" + tag + "'}]\\n\"}}"
}

// faultTests returns a test for each fault: what is wrong meanwhile, and the recovery.
func faultTests() []string {
	type faultTest struct{ name, fault, meanwhile, recovery string }
	change := func(color string) (commit, expect string) { return settingsOf(color) }
	toRed, red := change("red")
	toGreen, green := change("green")
	toBlack, black := change("black")
	toWhite, white := change("white")
	toGray, gray := change("gray")
	toPink, pink := change("pink")
	gitWhy := func(message string) string {
		return "why: {object: " + gitHome + ", rootCause: " + gitHome + ", message: '" + message + "'}"
	}
	recovers := "ready: {object: " + gitHome + "}}, {ready: {object: " + ksInfra + "}"
	toCyan, cyan := change("cyan")
	toBrown, brown := change("brown")
	tests := []faultTest{
		{"leaderless", "controller: {name: kustomize-controller, state: leaderless}", toCyan + ", expect: [{event: {object: " + gitHome + ", reason: NewArtifact}}]", cyan},
		{"api-server", "apiServer: {state: restarted}", toBrown + ", expect: [{" + brown + "}]", recovers},
		{"git-down", "server: {name: git, down: true}", toRed + ", expect: [{" + gitWhy("EOF|reset|closed|unable to (clone|list)") + "}]",
			recovers + "}, {order: [" + gitHome + ", " + ksInfra + "]}, {" + red},
		{"git-slow", "server: {name: git, delay: 3s}", toGreen + ", expect: [{" + green + "}]", recovers},
		{"git-down-for", "server: {name: git, down: true, for: 5s}", toBlack + ", expect: [{ready: {object: " + gitHome + "}}]", black},
		{"credentials", "server: {name: git, status: 401}", toWhite + ", expect: [{" + gitWhy("authentication|[Cc]redentials") + "}]", recovers + "}, {" + white},
		{"killed", "controller: {name: kustomize-controller, state: killed}", toGray + ", expect: [{" + gray + "}]", recovers},
		{"registry", "server: {name: registry, status: 429}", scan + ", expect: [{why: {object: " + scanned + ", rootCause: " + scanned + ", message: 'TOOMANYREQUESTS|rate|many requests'}}]", "ready: {object: " + scanned + "}"},
		{"webhook", "webhook: {resource: configmaps, namespace: default, deny: settings are frozen}",
			toPink + ", expect: [{why: {object: " + ksApps + ", rootCause: " + ksInfra + ", message: settings are frozen}}]", "order: [" + ksInfra + ", " + ksApps + "]}, {" + pink},
		{"pods", "pods: {namespace: default, state: crash-loop}", imageOf("6.9.1") + ", expect: [{why: {object: " + ksApps + ", message: 'web'}}]", "ready: {object: " + ksApps + "}"},
		{"pull-errors", "pods: {namespace: default, state: image-pull-error}", imageOf("6.9.2") + ", expect: [{why: {object: " + ksApps + ", message: 'podinfo:6.9.2'}}]", "ready: {object: " + ksApps + "}"},
		{"quota", "quota: {namespace: default, hard: {pods: '0'}}", imageOf("6.9.3") + ", expect: [{why: {object: " + ksApps + ", message: '[Qq]uota'}}]", "ready: {object: " + ksApps + "}"},
	}
	var texts []string
	for _, f := range tests {
		texts = append(texts, fmt.Sprintf(testHead, f.name)+"  - {name: meanwhile, faults: [{"+f.fault+"}], "+f.meanwhile+"}\n  - {name: recovery, expect: [{"+f.recovery+"}]}\n")
	}
	return texts
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, r := range runTests(t, tested, faultTests()...) {
		t.Log(r.Outcome, r, r.Seconds)
		if r.Outcome != assert.Passed {
			t.Error(r)
		}
	}
}
