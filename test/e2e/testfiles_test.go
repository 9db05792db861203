package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/kube/expression/cel"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/assert"
	"github.com/fluxkit/flux/pkg/testrun/fault"
	"github.com/fluxkit/flux/pkg/testrun/policy"
	"github.com/fluxkit/flux/pkg/testrun/settle"
	"github.com/fluxkit/flux/pkg/testrun/sources"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// tested is the repository whose test files are run.
var tested = map[string]string{
	"clusters/demo/apps.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./apps
  prune: true
  wait: true
  timeout: 20s
  dependsOn: [{name: infra}]
  sourceRef: {kind: GitRepository, name: flux-system}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: infra, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./infra
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: chat, namespace: flux-system}
spec: {type: slack, channel: deployments, address: "https://hooks.example.com/services/1"}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: on-call, namespace: flux-system}
spec:
  providerRef: {name: chat}
  eventSources: [{kind: Kustomization, name: apps}]
`,
	"infra/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {color: blue}\n",
	"infra/old.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: default}\n",
	"infra/other.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: default}\ndata: {color: blue}\n",
	"apps/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: ghcr.io/stefanprodan/podinfo:6.9.0 # {"$imagepolicy": "flux-system:web"}
`,
}

// testHead is the beginning of a document of a test file, whose timeout is waitTime.
const testHead = "apiVersion: test.fluxkit.dev/v1\nkind: Test\nmetadata: {name: %s}\nspec:\n  timeout: 4m\n  steps:\n"

// rollout holds after the first reconciliation.
const rollout = `  - name: rollout
    expect:
    - exists: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}
    - absent: {apiVersion: v1, kind: ConfigMap, namespace: default, name: nothing}
    - value: {object: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}, expression: "object.spec.template.spec.containers[0].image.endsWith(':6.9.0')"}
    - ready: {object: {kind: Kustomization, namespace: flux-system, name: apps}, reconciliations: 1}
    - order: [{kind: GitRepository, namespace: flux-system, name: flux-system}, {kind: Kustomization, namespace: flux-system, name: infra}, {kind: Kustomization, namespace: flux-system, name: apps}]
    - event: {object: {kind: Kustomization, namespace: flux-system, name: infra}, type: Normal, reason: Progressing, message: ConfigMap/default/settings created}
    - notification: {provider: {namespace: flux-system, name: chat}, object: {kind: Kustomization, namespace: flux-system, name: apps}, reason: ReconciliationSucceeded}
  - name: a change
    commit:
      files:
        infra/settings.yaml: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: settings, namespace: default}
          data: {color: red}
        infra/old.yaml: null
    expect:
    - value: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, expression: object.data.color, equals: red}
    - pruned: {apiVersion: v1, kind: ConfigMap, namespace: default, name: old}
    - absent: {apiVersion: v1, kind: ConfigMap, namespace: default, name: old}
    - committed: {file: infra/settings.yaml, content: "color: red"}
    - event: {object: {kind: Kustomization, namespace: flux-system, name: infra}, reason: Progressing, message: ConfigMap/default/old deleted}
    - ready: {object: {kind: Kustomization, namespace: flux-system, name: apps}}
  - name: drift
    expect:
    - corrected: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, merge: {data: {color: green}}}
  - name: a broken change
    commit:
      files: {infra/settings.yaml: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {color: [1]}\n"}
    expect:
    - why: {object: {kind: Kustomization, namespace: flux-system, name: apps}, rootCause: {kind: Kustomization, namespace: flux-system, name: infra}, message: data.color}
    - value: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, expression: object.data.color, equals: red}
  - name: the repair
    commit:
      files: {infra/settings.yaml: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {color: white}\n"}
    expect:
    - ready: {object: {kind: Kustomization, namespace: flux-system, name: infra}}
    - ready: {object: {kind: Kustomization, namespace: flux-system, name: apps}}
`

// registryAddress is replaced in tests by the address of the registry of the sandbox.
const registryAddress = "REGISTRY"

func loadTests(t *testing.T, registry string, texts []string) []assert.Test {
	t.Helper()
	var tests []assert.Test
	for i, text := range texts {
		loaded, err := assert.Load(fmt.Sprintf("%d.fluxtest.yaml", i), strings.NewReader(strings.ReplaceAll(text, registryAddress, registry)))
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, loaded...)
	}
	return tests
}

// pushImages pushes images without content.
func pushImages(t *testing.T, credentials string, names ...string) {
	t.Helper()
	for _, image := range names {
		ref, err := name.ParseReference(image, name.Insecure)
		if err == nil {
			user, password, _ := strings.Cut(credentials, ":")
			err = remote.Write(ref, empty.Image, remote.WithContext(t.Context()), remote.WithAuth(&authn.Basic{Username: user, Password: password}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runTests runs test files in a sandbox and returns the results as text, one line each.
func runTests(t *testing.T, files map[string]string, texts ...string) []assert.Result {
	t.Helper()
	testcluster.Programs(t)
	sandboxes.Acquire(t, testcluster.Started)
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), sandboxWaits*waitTime)
	defer cancel()
	repository := &sources.Repository{Tree: tree, Path: "clusters/demo"}
	if err := repository.Load(ctx); err != nil {
		t.Fatal(err)
	}
	sink, err := assert.OpenSink(ctx)
	if err != nil {
		t.Fatal(err)
	}
	run := &testrun.Run{
		Program: filepath.Join(testcluster.Bin(), helper.Sandbox), Distribution: controllers.DefaultDistribution(), Repository: repository,
		Now: time.Now, Progress: func(step string) { t.Log(step) }, Received: &policy.Received{Sink: sink.Address, Permission: "test"},
	}
	defer func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	}()
	runner := &assert.Runner{Evaluator: cel.New(), Sink: sink, Permission: "test", Now: time.Now, Progress: run.Progress, Settle: run.Settle}
	run.Watching = func() {
		tests := loadTests(t, run.Sandbox.Registry, texts)
		runner.Client, runner.Home, runner.Repository = run.Sandbox.Client, run.Set.Namespace, assert.Repository{URL: run.Address, Remote: run.Sandbox.Remote(run.Address), Now: time.Now}
		runner.Faults = fault.Injector{Client: runner.Client, Sandbox: run.Sandbox, Home: runner.Home, Now: time.Now}
		pushImages(t, run.Sandbox.Credentials(), run.Sandbox.Registry+"/web:1.0.0", run.Sandbox.Registry+"/web:1.1.0")
		runner.Start(ctx, tests)
	}
	if err := run.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	if err := run.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	for target, f := range run.Flux {
		if !f.Kind.IsReady(f.Object) {
			t.Logf("%s is not ready: %v", target, f.Kind.Ready(f.Object).Message)
		}
	}
	results, err := runner.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// updated is a test of an image update, similar to one that pushes to another repository.
const updated = `  - name: update
    apply:
    - apiVersion: image.toolkit.fluxcd.io/v1
      kind: ImageRepository
      metadata: {name: web, namespace: flux-system}
      spec: {image: REGISTRY/web, insecure: true, interval: 10m}
    - apiVersion: image.toolkit.fluxcd.io/v1
      kind: ImagePolicy
      metadata: {name: web, namespace: flux-system}
      spec: {imageRepositoryRef: {name: web}, policy: {semver: {range: 1.x}}}
    - apiVersion: image.toolkit.fluxcd.io/v1
      kind: ImageUpdateAutomation
      metadata: {name: web, namespace: flux-system}
      spec:
        interval: 10m
        sourceRef: {kind: GitRepository, name: flux-system}
        git: {commit: {author: {name: flux, email: flux@localhost}}}
        update: {path: ./apps}
    - apiVersion: source.toolkit.fluxcd.io/v1
      kind: GitRepository
      metadata: {name: other, namespace: flux-system}
      spec: {interval: 10m, url: "http://127.0.0.1:1/other"}
    - apiVersion: image.toolkit.fluxcd.io/v1
      kind: ImageUpdateAutomation
      metadata: {name: other, namespace: flux-system}
      spec:
        interval: 10m
        sourceRef: {kind: GitRepository, name: other}
        git: {commit: {author: {name: flux, email: flux@localhost}}}
    expect:
    - committed: {file: apps/web.yaml, content: '/web:1\.1\.0 #'}
  - name: the image is rolled out
    reconcile: [{kind: GitRepository, namespace: flux-system, name: flux-system}]
    expect:
    - value: {object: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}, expression: "object.spec.template.spec.containers[0].image", equals: "REGISTRY/web:1.1.0"}
    - value: {object: {kind: ImageUpdateAutomation, namespace: flux-system, name: other}, expression: object.spec.suspend}
`

// nearMiss is an assertion that fails, with a text in the result.
type nearMiss struct{ step, actual string }

// nearMisses lists assertions that differ from passing ones only in the checked object or
// value.
var nearMisses = []nearMiss{
	{step: "expect: [{exists: {apiVersion: v1, kind: ConfigMap, namespace: default, name: setting}}]", actual: "but it does not exist"},
	{step: "expect: [{exists: {apiVersion: v2, kind: ConfigMap, namespace: default, name: settings}}]", actual: "but the API server does not serve ConfigMap in v2"},
	{step: "expect: [{exists: {apiVersion: v1, kind: ConfigMap, name: settings}}]", actual: "but the namespace is required for ConfigMap"},
	{step: "expect: [{absent: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}}]", actual: "but it exists"},
	{step: "expect: [{value: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, expression: object.data.color, equals: blue}}]", actual: `but it is "white"`},
	{step: "expect: [{pruned: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}}]", actual: "but it exists"},
	// Deleted by another program than Flux.
	{step: "delete: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: other}], expect: [{pruned: {apiVersion: v1, kind: ConfigMap, namespace: default, name: other}}]", actual: "but it was deleted, but is still in the inventory of Kustomization/flux-system/infra"},
	// A field that Flux has not applied.
	{step: "expect: [{corrected: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, merge: {data: {extra: x}}}}]", actual: "but the change to data.extra was not reverted"},
	{step: "expect: [{corrected: {object: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}, merge: {data: {color: white}}}}]", actual: "the patch changes nothing"},
	{step: "timeout: 3s, expect: [{event: {object: {kind: Kustomization, namespace: flux-system, name: infra}, reason: Progress}}]", actual: "other event"},
	{step: "timeout: 3s, expect: [{event: {object: {kind: GitRepository, namespace: flux-system, name: infra}, reason: Progressing}}]", actual: "but there is none"},
	{step: "timeout: 3s, expect: [{notification: {provider: {namespace: flux-system, name: chat}, object: {kind: Kustomization, namespace: flux-system, name: infra}}}]", actual: "other notification"},
	{step: "timeout: 3s, expect: [{notification: {provider: {namespace: default, name: chat}}}]", actual: "but there is none"},
	{step: "timeout: 3s, expect: [{committed: {file: infra/settings.yaml, content: 'color: blue'}}]", actual: "but the content does not match"},
	{step: "expect: [{why: {object: {kind: Kustomization, namespace: flux-system, name: apps}, message: timeout}}]", actual: "but it has no problem"},
	{step: "expect: [{order: [{kind: Kustomization, namespace: flux-system, name: apps}, {kind: Kustomization, namespace: flux-system, name: infra}]}]", actual: "Kustomization/flux-system/infra became ready before Kustomization/flux-system/apps"},
	// Suspended: no assertion about its readiness passes.
	{step: "patch: [{object: {kind: Kustomization, namespace: flux-system, name: apps}, merge: {spec: {suspend: true}}}], expect: [{ready: {object: {kind: Kustomization, namespace: flux-system, name: apps}}}]", actual: "but it is suspended"},
	{step: "apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: missing}}], expect: [{exists: {apiVersion: v1, kind: Namespace, name: default}}]", actual: `namespaces "missing" not found`},
}

func TestFiles(t *testing.T) {
	t.Parallel()
	texts := []string{fmt.Sprintf(testHead, "rollout") + rollout, fmt.Sprintf(testHead, "rollout-of-an-image") + updated}
	for i, miss := range nearMisses {
		texts = append(texts, fmt.Sprintf(testHead, fmt.Sprint("near-miss-", i))+"  - {"+miss.step+"}\n")
	}
	failed := map[string]string{}
	patient := maps.Clone(tested)
	for name, content := range tested {
		// No health check may time out: the test file counts the reconciliations.
		patient[name] = strings.ReplaceAll(content, "timeout: 20s", "timeout: 3m")
	}
	for _, r := range runTests(t, patient, texts...) {
		passes := strings.HasPrefix(r.Test, "rollout")
		if passes != (r.Outcome == assert.Passed) {
			t.Error(r.Outcome, r)
		}
		if r.Outcome != assert.Passed {
			failed[r.Test] += r.String() + "\n"
		}
	}
	for i, miss := range nearMisses {
		if got := failed[fmt.Sprint("near-miss-", i)]; !strings.Contains(got, miss.actual) {
			t.Errorf("%s:\n%swant %q", miss.step, got, miss.actual)
		}
	}
}

// TestNightlyFilesCommand runs the test files of a repository with flux test.
func TestNightlyFilesCommand(t *testing.T) {
	t.Parallel()
	sh := newUser(t)
	files := map[string]string{"tests/rollout.fluxtest.yaml": fmt.Sprintf(testHead, "rollout") + rollout, "clusters/demo/my-app.yaml": strings.ReplaceAll(tested["clusters/demo/apps.yaml"], "./apps", "./web")}
	for name, content := range tested {
		if !strings.HasPrefix(name, "clusters/") {
			files[strings.Replace(name, "apps/", "web/", 1)] = content
		}
	}
	wrong := "  - {commit: {files: {web/kustomization.yaml: 'resources: [gone.yaml]'}}, expect: [{exists: {apiVersion: v1, kind: ConfigMap, namespace: default, name: settings}}, {exists: {apiVersion: v1, kind: ConfigMap, namespace: default, name: gone}}]}\n"
	files["tests/wrong.fluxtest.yaml"] = fmt.Sprintf(testHead, "wrong") + wrong
	dir := writeFleet(sh, files)
	var report struct {
		Result string
		Tests  []assert.Result
	}
	stdout, stderr, err := sh.in(dir).try("flux", "test", "-o", "json")
	if exitCode(err) != 1 {
		t.Errorf("%v, want exit code 1\n%s%s", err, stdout, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	for i, r := range report.Tests {
		if last := i == len(report.Tests)-1; last != (r.Outcome == assert.Failed) || !last && r.Outcome != assert.Passed {
			t.Error(r.Outcome, r)
		}
	}
	if actual := report.Tests[len(report.Tests)-1].Actual; !strings.HasPrefix(actual, "it does not exist; not ready: Kustomization/flux-system/apps: ") || !strings.Contains(actual, "gone.yaml") {
		t.Errorf("the failed assertion does not name what fails to build: %s", actual)
	}
	if report.Result != settle.NotReady || len(report.Tests) < 15 {
		t.Errorf("%s, %d results\n%s", report.Result, len(report.Tests), stderr)
	}
	// The same repository, with one of its files.
	stdout, stderr, err = sh.in(dir).try("flux", "test", "tests/rollout.fluxtest.yaml")
	if err != nil || !strings.Contains(stdout, "\nTests\n  rollout: ") || !strings.Contains(stderr, "assertions passed") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
}
