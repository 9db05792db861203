package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
)

// fleet is the repository of a cluster that was bootstrapped with Flux 2.9.
var fleet = map[string]string{
	"clusters/demo/flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 1m0s
  ref: {branch: main}
  secretRef: {name: flux-system}
  url: ssh://git@git.example.com/acme/fleet
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./clusters/demo
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
	"clusters/demo/flux-system/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [gotk-components.yaml, gotk-sync.yaml]
`,
	// The application comes from the same repository, with another form of its URL.
	"clusters/demo/my-app.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 1m0s
  ref: {branch: main}
  url: https://git.example.com/acme/fleet.git
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: my-app, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./apps/my-app
  prune: true
  wait: true
  dependsOn: [{name: settings}]
  sourceRef: {kind: GitRepository, name: apps}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: settings, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./apps/settings
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
	"apps/settings/settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {color: blue}
`,
	"apps/my-app/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: my-app, namespace: default}
spec:
  selector: {matchLabels: {app: my-app}}
  template:
    metadata: {labels: {app: my-app}}
    spec:
      containers: [{name: app, image: "ghcr.io/stefanprodan/podinfo:6.9.0"}]
`,
}

// notifications contains an Alert in an API version that Flux 2.10 deprecates, with a field
// that its successor does not have. Notifications would be sent to a closed port.
const notifications = `apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: chat, namespace: flux-system}
spec: {type: generic, address: "http://127.0.0.1:1/hook"}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: on-call, namespace: flux-system}
spec:
  summary: the demo cluster
  providerRef: {name: chat}
  eventSources: [{kind: Kustomization, name: "*"}]
`

const postRendered = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 10m0s
  targetNamespace: default
  releaseName: web
  chart:
    spec:
      chart: ./charts/web
      version: '*'
      reconcileStrategy: ChartVersion
      sourceRef: {kind: GitRepository, name: flux-system}
  postRenderers:
    - kustomize:
        patches:
          - target: {kind: ConfigMap}
            patch: |
              [{"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}]
`

// writeFleet writes the repository into a Git work tree.
func writeFleet(sh *shell, more map[string]string) string {
	sh.t.Helper()
	dir := sh.t.TempDir()
	files := map[string]string{"clusters/demo/flux-system/gotk-components.yaml": sh.run("flux", "install", "--version=2.9", "--export")}
	for _, set := range []map[string]string{fleet, more} {
		for name, content := range set {
			files[name] = content
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			sh.t.Fatal(err)
		}
	}
	if _, stderr, err := sh.in(dir).try("git", "init", "--quiet"); err != nil {
		sh.t.Fatal(stderr)
	}
	return dir
}

const webChart = "apiVersion: v2\nname: web\nversion: 1.0.0\n"

const webTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: hello}\n"
