package build_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// tree makes folders and files of a text: a line "-- name --" begins a file.
func tree(text string) fstest.MapFS {
	files := fstest.MapFS{}
	var name string
	for _, line := range strings.SplitAfter(text, "\n") {
		if bare := strings.TrimSpace(line); strings.HasPrefix(bare, "-- ") && strings.HasSuffix(bare, " --") {
			name = strings.TrimSuffix(strings.TrimPrefix(bare, "-- "), " --")
			files[name] = &fstest.MapFile{Mode: 0o600}
			continue
		}
		if name != "" {
			files[name].Data = append(files[name].Data, line...)
		}
	}
	return files
}

func show(t *testing.T, result *build.Result) string {
	t.Helper()
	var b strings.Builder
	for _, o := range result.Objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteString("---\n")
	}
	return b.String()
}

// TestContract builds the recorded folder.
func TestContract(t *testing.T) {
	t.Parallel()
	files := os.DirFS("../../test/compat/files")
	text, err := os.ReadFile("../../test/compat/files/ks-web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	result, err := build.Kustomization(context.Background(), files, object(t, string(text)), build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    kustomize.toolkit.fluxcd.io/name: web
    kustomize.toolkit.fluxcd.io/namespace: flux-system
    tier: front
  name: web
  namespace: apps
spec:
  replicas: 5
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - env:
        - name: CLUSTER
          value: prod-1
        - name: REGION
          value: eu
        image: ghcr.io/org/web:1.0.0
        name: web
---
apiVersion: v1
kind: Service
metadata:
  labels:
    kustomize.toolkit.fluxcd.io/name: web
    kustomize.toolkit.fluxcd.io/namespace: flux-system
    tier: front
  name: web
  namespace: apps
spec:
  ports:
  - port: 80
    targetPort: 8080
  selector:
    app: web
---
apiVersion: v1
kind: Secret
metadata:
  labels:
    kustomize.toolkit.fluxcd.io/name: web
    kustomize.toolkit.fluxcd.io/namespace: flux-system
    tier: front
  name: web
  namespace: apps
stringData:
  password: hunter2
---
`
	if diff := cmp.Diff(want, show(t, result)); diff != "" {
		t.Error(diff)
	}
}

func TestSubstitutionRemembersSecrets(t *testing.T) {
	t.Parallel()
	files := tree(`
-- app/cm.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data:
  open: "${region}"
  url: "https://${user}:${password}@example.com"
  port: "${port:=80}"
`)
	ks := object(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: flux-system}
spec:
  path: ./app
  postBuild:
    substitute: {region: eu}
    substituteFrom:
    - {kind: ConfigMap, name: vars}
    - {kind: Secret, name: creds}
    - {kind: Secret, name: none, optional: true}
`)
	lookup := build.FromObjects([]*unstructured.Unstructured{
		object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {region: us, user: me}"),
		object(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: creds, namespace: flux-system}\nstringData: {password: hunter2}"),
	})
	result, err := build.Kustomization(context.Background(), files, ks, build.Options{Lookup: lookup, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"open": "eu", "url": "https://me:hunter2@example.com", "port": int64(80)} // a number, as the controller makes it
	if diff := cmp.Diff(want, result.Objects[0].Object["data"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"data", "url"}}, result.Objects[0].Secret); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"hunter2"}, result.SecretValues); diff != "" {
		t.Error(diff)
	}
}
