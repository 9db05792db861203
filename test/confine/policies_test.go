//go:build linux

package confine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/testrun/examine"
)

// elsewhere is a Kustomization for another cluster: its kubeconfig is that of the sandbox, so that it could be applied.
const elsewhere = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: remote, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./remote
  prune: true
  kubeConfig: {secretRef: {name: remote}}
  sourceRef: {kind: GitRepository, name: flux-system}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: remote, namespace: flux-system}
spec:
  interval: 10m0s
  kubeConfig: {secretRef: {name: remote}}
  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system}}}
`

// hostile is a Kustomization that replaces a policy of flux.
const hostile = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: hostile, namespace: flux-system}
spec: {interval: 10m0s, path: ./hostile, prune: true, force: true, sourceRef: {kind: GitRepository, name: flux-system}}
`

// steps contains the steps of a test file that tries to end the isolation.
const steps = `apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: isolation}
spec:
  timeout: 2m
  steps:
  - name: resume the Kustomization
    patch:
    - object: {kind: Kustomization, namespace: flux-system, name: remote}
      merge: {spec: {suspend: false}}
    reconcile: [{kind: Kustomization, namespace: flux-system, name: remote}]
    expect:
    - value: {object: {kind: Kustomization, namespace: flux-system, name: remote}, expression: object.spec.suspend, equals: true}
    - absent: {apiVersion: v1, kind: ConfigMap, namespace: default, name: remote}
  - name: resume the HelmRelease
    patch:
    - object: {kind: HelmRelease, namespace: flux-system, name: remote}
      merge: {spec: {suspend: false}}
    expect:
    - value: {object: {kind: HelmRelease, namespace: flux-system, name: remote}, expression: object.spec.suspend, equals: true}
---
apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: delete-a-policy}
spec:
  steps:
  - name: delete
    delete: [{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, name: flux-test-suspend-kustomizations}]
---
apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: delete-a-binding}
spec:
  steps:
  - name: delete
    delete: [{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, name: flux-test-suspend-kustomizations}]
---
apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: apply-another-policy}
spec:
  steps:
  - name: apply
    apply:
    - apiVersion: admissionregistration.k8s.io/v1
      kind: MutatingAdmissionPolicyBinding
      metadata: {name: flux-test-suspend-kustomizations}
      spec: {policyName: none}
`

// TestPolicies tries to disable the isolation with a Kustomization that has administrator permissions, and with the steps
// of a test file, which have the permissions of flux.
func TestPolicies(t *testing.T) {
	dir := writeRepository(t, map[string]string{
		cluster + "/remote.yaml":  elsewhere,
		cluster + "/hostile.yaml": hostile,
		"hostile/policy.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\n" +
			"metadata: {name: flux-test-suspend-kustomizations}\nspec: {policyName: none}\n",
		"remote/config.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: remote, namespace: default}\n",
		"chart/Chart.yaml":        "apiVersion: v2\nname: remote\nversion: 1.0.0\n",
		"tests/all.fluxtest.yaml": steps,
	})
	cmd := exec.CommandContext(t.Context(), fluxWithSandbox(t), "test", "--path="+cluster, "-o", "json", filepath.Join("tests", "all.fluxtest.yaml"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBECONFIG=/dev/null")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	var exited *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exited) || exited.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, &log)
	}
	var report examine.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	const denied = "cannot be changed"
	if message := causes(&report)["Kustomization/hostile"]; !strings.Contains(message, denied) {
		t.Errorf("the Kustomization that replaces a policy: %q", message)
	}
	got := map[string]string{}
	for _, r := range report.Tests {
		text := string(r.Outcome)
		if strings.Contains(r.Actual, denied) {
			text += ", " + denied
		}
		got[r.Test+": "+r.Step+": "+r.Expected] = text
	}
	const acts = ": the actions of the step succeed"
	want := map[string]string{
		"delete-a-policy: delete" + acts: "failed, " + denied, "delete-a-binding: delete" + acts: "failed, " + denied,
		"apply-another-policy: apply" + acts: "failed, " + denied,
	}
	for name, outcome := range got {
		if strings.HasPrefix(name, "isolation: ") && outcome == "passed" {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s\n%s", diff, &out, &log)
	}
}
