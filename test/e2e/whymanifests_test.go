package e2e_test

import (
	"fmt"
	"path"
	"strings"
)

const whyDefault = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, retryInterval: 10s, timeout: 20s, path: "${PATH}", prune: true, wait: true, targetNamespace: "${NS}", sourceRef: {kind: GitRepository, name: app}}
`

const gitRepository = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
`

// applied returns a Kustomization that applies a directory of a source.
func applied(name, kind, source, path, more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s}
spec: {interval: 1h, retryInterval: 1h, path: ./%s, prune: true, targetNamespace: "${NS}", sourceRef: {kind: %s, name: %s}%s}
`, name, path, kind, source, more)
}

// kustomizationWith returns a GitRepository and a Kustomization with additional spec, and
// without a target namespace if there is no other spec.
func kustomizationWith(spec string) string {
	if spec == "" {
		spec = "force: false"
	} else {
		spec += `, targetNamespace: "${NS}"`
	}
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, retryInterval: 10s, timeout: 20s, path: "${PATH}", prune: true, ` + spec + `, sourceRef: {kind: GitRepository, name: app}}
`
}

const chartRelease = `${DEFAULT}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app}
spec:
  interval: 1h
  timeout: 10s
  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: app}}}
`

// patient returns a release whose timeout does not end on a busy machine.
func patient(release string) string {
	return strings.ReplaceAll(release, "timeout: 10s", "timeout: 3m")
}

// chartAt returns a release with a chart from a directory of the repository.
func chartAt(path, more string) string {
	return `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app}
spec:
  interval: 1h
  timeout: 10s
  chart: {spec: {chart: ` + path + `, sourceRef: {kind: GitRepository, name: app}}}
` + more
}

// encryptedSecret has the form of a SOPS file that cannot be decrypted.
const encryptedSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: locked}\ndata: {a: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\"}\nsops:\n  mac: ENC[AES256_GCM,data:AAAA]\n  version: 3.10.0\n"

// fixed returns a fix that pushes files to the directory of the failure, or removes those
// that are empty.
func fixed(name string, files map[string]string) func(*fixture) {
	return func(f *fixture) {
		f.t.Helper()
		pushed := map[string]string{}
		for file, content := range files {
			pushed[path.Join("cases", name, file)] = content
		}
		f.git.commit("Fix "+name, pushed)
	}
}
