package hostile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// reportMax is the maximum size of a report with a message of one MiB.
const reportMax = 64 << 10

// invalid is a repository with objects that are invalid, and messages about them of one MiB.
func invalid(t *testing.T) string {
	t.Helper()
	folder, large := t.TempDir(), strings.Repeat("x", 1<<20)
	write(t, filepath.Join(folder, "cluster", "sync.yaml"), `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: flux-system}
spec: {interval: 1m, prune: true, path: ./cluster, sourceRef: {kind: GitRepository, name: app}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app, namespace: flux-system}
spec: {interval: 1m, url: "https://example.com/app"}
`)
	write(t, filepath.Join(folder, "cluster", "crd.yaml"), `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string, enum: [`+large+`]}}}}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: enum, namespace: default}
spec: {size: small}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: key, namespace: default}
spec:
  ? `+strings.ToUpper(large)+`
  : small
---
apiVersion: v1
kind: Service
metadata: {name: type, namespace: default}
spec: {ports: `+large+`}
`)
	commit(t, folder)
	return folder
}

// TestReports checks that machine-readable reports are valid and limited in size if a message about an object has one MiB,
// such as a message of a schema or of the API server.
func TestReports(t *testing.T) {
	t.Parallel()
	folder := invalid(t)
	kubeconfig := cluster{
		kustomizations:  {applied("app", "False", strings.Repeat("failed to x: ", 1<<20/13), nil)},
		gitRepositories: {repository()},
	}.kubeconfig(t)
	for _, c := range []struct{ line, has string }{
		{"validate --path cluster -o json", "must be one of"},
		{"why ks/app -n apps -o json --kubeconfig " + kubeconfig, "failed to x"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(testcluster.Programs(t), "flux"), words(c.line)...)
		cmd.Dir, cmd.Env = folder, []string{"HOME=" + t.TempDir()}
		var out, messages bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &messages
		var exited *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exited) || exited.ExitCode() != 1 {
			t.Errorf("flux %s: %v\n%.2000s", c.line, err, &messages)
		}
		if !json.Valid(out.Bytes()) || out.Len() > reportMax || !strings.Contains(out.String(), c.has) {
			t.Errorf("flux %s prints %d bytes, valid %t:\n%.2000s", c.line, out.Len(), json.Valid(out.Bytes()), &out)
		}
	}
}
