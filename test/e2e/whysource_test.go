package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhySources(t *testing.T) {
	t.Parallel()
	runFailures(newShared(t), failingSources(), false)
}

func TestNightlyWhySources(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	pushArtifact(f, "cause/app", "v1", "application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip", archive(t, map[string]string{"settings.yaml": plainMap}))
	runFailures(f, failingSources(), true)
}

// failingSources lists sources that cannot be fetched.
func failingSources() []failure {
	return slices.Concat(withoutReconcile(sourceFailures()), resemblingSources())
}

func sourceFailures() []failure {
	source := func(spec string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 20s, " + spec + "}\n---\n" + `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, retryInterval: 10s, path: ./, prune: true, sourceRef: {kind: GitRepository, name: app}}
`
	}
	return []failure{
		{
			name: "authentication", root: "GitRepository/app", code: "source-authentication", says: []string{"Secret ${NS}/wrong"},
			objects: source(`url: "${URL}", secretRef: {name: wrong}`) + `
---
apiVersion: v1
kind: Secret
metadata: {name: wrong}
stringData: {username: dev, password: guessed}
`,
		},
		{name: "anonymous", nightly: true, root: "GitRepository/app", code: "source-authentication", says: []string{".spec.secretRef is not set"}, given: map[string]func(*fixture) string{"<name>": value("new"), "<user>": value("dev"), "<file>": fileWith("correct horse")}, objects: source(`url: "${URL}"`)},
		{name: "branch", root: "GitRepository/app", code: "source-reference", says: []string{"branch gone"}, objects: source(`url: "${URL}", secretRef: {name: git}, ref: {branch: gone}`)},
		{name: "repository", root: "GitRepository/app", code: "source-not-found", says: []string{"does not exist"}, objects: source(`url: "${URL}.gone", secretRef: {name: git}`)},
		{name: "unreachable", root: "GitRepository/app", code: "source-unreachable", says: []string{"NetworkPolicies"}, objects: source(`url: "http://127.0.0.1:1/fleet.git"`)},
		{name: "secret", root: "GitRepository/app", code: "secret-missing", says: []string{"flux create secret git gone -n ${NS} --url="}, given: map[string]func(*fixture) string{"<user>": value("dev"), "<file>": fileWith("correct horse")}, objects: source(`url: "${URL}", secretRef: {name: gone}`)},
		{
			name: "source", root: "GitRepository/gone", code: "missing", says: []string{"correct the reference to it, or create it: flux create source git gone -n ${NS} --url=<url> --branch=<branch>"},
			given:   map[string]func(*fixture) string{"<url>": value("http://127.0.0.1:1/fleet.git"), "<branch>": value("main")},
			fails:   map[string]string{"flux create source git gone -n ${NS} --url=<url> --branch=<branch>": "127.0.0.1:1"},
			objects: "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app}\nspec: {interval: 1h, path: ./, prune: true, sourceRef: {kind: GitRepository, name: gone}}\n",
		},
		{name: "stopped", root: "GitRepository/app", code: "suspended", says: []string{"flux resume source git app -n ${NS}"}, fails: map[string]string{"flux resume source git app -n ${NS}": "requires credentials"}, objects: source(`url: "${URL}", suspend: true`)},
		{
			name: "artifact", nightly: true, args: []string{"ocirepository", "app"}, root: "OCIRepository/app", code: "source-reference", says: []string{"correct .spec.ref or .spec.url of OCIRepository/${NS}/app"},
			objects: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: app}\nspec: {interval: 1h, insecure: true, url: \"oci://${REGISTRY}/app\", ref: {tag: gone}}\n",
		},
		{
			name: "index", nightly: true, args: []string{"helmrepository", "app"}, root: "HelmRepository/app", code: "source-unreachable", says: []string{"http://127.0.0.1:1"},
			objects: "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: app}\nspec: {interval: 1h, url: \"http://127.0.0.1:1/charts\"}\n",
		},
	}
}

// resemblingSources lists sources whose URLs and revisions look like HTTP status codes.
func resemblingSources() []failure {
	git := func(spec string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 20s, " + spec + "}\n"
	}
	oci := func(spec string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 20s, insecure: true, " + spec + "}\n"
	}
	gitSource, ociSource := []string{"gitrepository", "app"}, []string{"ocirepository", "app"}
	noCredentials := []string{"credentials", "secretRef"}
	patched := func(kind, spec string) func(f *fixture) {
		return func(f *fixture) {
			spec = strings.NewReplacer("${URL}", f.git.address, "${REGISTRY}", f.cluster.Env["FLUX_SANDBOX_REGISTRY"]).Replace(spec)
			f.shell.run("kubectl", "-n", f.namespace, "patch", kind, "app", "--type=merge", `-p={"spec":{`+spec+`}}`)
		}
	}
	account := map[string]func(*fixture) string{"<user>": value("dev"), "<file>": fileWith("any")}
	return []failure{
		{name: "port-401", nightly: true, args: gitSource, root: "GitRepository/app", code: "source-unreachable", objects: git(`url: "http://127.0.0.1:14012/fleet.git"`), says: []string{"cannot reach http://127.0.0.1:14012/fleet.git"}, never: noCredentials, fix: patched("gitrepository", `"url":"${URL}","secretRef":{"name":"git"},"ref":{"branch":"main"}`)},
		{name: "port-15401", nightly: true, args: ociSource, root: "OCIRepository/app", code: "source-unreachable", objects: oci(`url: "oci://127.0.0.1:15401/app", ref: {tag: v1}`), says: []string{"cannot reach oci://127.0.0.1:15401/app"}, never: noCredentials, broken: true},
		{name: "port-14040", nightly: true, args: gitSource, root: "GitRepository/app", code: "source-unreachable", objects: git(`url: "http://127.0.0.1:14040/not-found.git"`), says: []string{"cannot reach http://127.0.0.1:14040/not-found.git"}, never: noCredentials, broken: true},
		{
			name: "image-14040", nightly: true, args: []string{"imagerepository", "app"}, root: "ImageRepository/app", code: "source-unreachable", says: []string{"check .spec.image of ImageRepository/${NS}/app"}, never: []string{"spec.url", "spec.ref"},
			objects: "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 5s, image: \"127.0.0.1:14040/app\", insecure: true}\n",
			broken:  true,
		},
		{
			name: "image-gone", nightly: true, args: []string{"imagerepository", "app"}, root: "ImageRepository/app", code: "source-reference", says: []string{".spec.image of ImageRepository/${NS}/app"}, never: []string{"spec.url", "spec.ref"},
			objects: "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 5s, image: \"${REGISTRY}/cause/gone-401\", insecure: true}\n",
			fix:     patched("imagerepository", `"image":"${REGISTRY}/cause/app"`),
		},
		{name: "tag-14012", nightly: true, args: gitSource, root: "GitRepository/app", code: "source-reference", objects: git(`url: "${URL}", secretRef: {name: git}, ref: {tag: build-14012}`), says: []string{"tag build-14012 not found in"}, never: noCredentials, fix: patched("gitrepository", `"ref":{"branch":"main","tag":null}`)},
		{
			name: "commit-401", nightly: true, args: gitSource, root: "GitRepository/app", code: "source-reference", says: []string{"commit 4014014014014014014014014014014014014014 not found in"}, never: noCredentials,
			objects: git(`url: "${URL}", secretRef: {name: git}, ref: {branch: main, commit: "4014014014014014014014014014014014014014"}`),
			fix:     patched("gitrepository", `"ref":{"branch":"main","commit":null}`),
		},
		{
			name: "tag-20240119", nightly: true, args: ociSource, root: "OCIRepository/app", code: "source-reference", says: []string{"tag 20240119 not found in oci://"}, never: noCredentials,
			objects: oci(`url: "oci://${REGISTRY}/cause/app", ref: {tag: "20240119"}`),
			fix:     patched("ocirepository", `"ref":{"tag":"v1"}`),
		},
		{
			name: "no-secret", nightly: true, args: ociSource, root: "OCIRepository/app", code: "secret-missing", says: []string{"Secret ${NS}/gone, referenced by .spec.secretRef.name, does not exist"},
			objects: oci(`url: "oci://${REGISTRY}/cause/app", ref: {tag: v1}, secretRef: {name: gone}`),
			given:   account, fix: func(*fixture) {}, // the commands are enough
		},
	}
}
