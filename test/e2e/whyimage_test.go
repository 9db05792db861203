package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhyImages(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	runFailures(f, slices.Concat(automationFailures(), pushFailures(f)), false)
}

func TestNightlyWhyImages(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	runFailures(f, slices.Concat(automationFailures(), pushFailures(f)), true)
}

// automationFailures are image automations that fail before the push to Git.
func automationFailures() []failure {
	const update = `---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: push-config}, git: {checkout: {ref: {branch: main}}, commit: {author: {email: a@example.com}}, push: {branch: main}}, update: {path: ./}}
`
	git := func(secret string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: push-config}\nspec: {interval: 1h, url: \"${URL}\", ref: {branch: main}, secretRef: {name: " + secret + "}}\n"
	}
	const wrong = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: wrong}\nstringData: {username: dev, password: guessed}\n"
	args := []string{"imageupdateautomation", "app"}
	return []failure{
		{
			name: "scan", once: true, args: []string{"imagepolicy", "app"}, root: "ImageRepository/app", code: "source-unreachable", says: []string{"127.0.0.1:1/app"},
			objects: "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\nmetadata: {name: app}\nspec: {interval: 1h, timeout: 5s, image: \"127.0.0.1:1/app\", insecure: true}\n---\n" +
				"apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\nmetadata: {name: app}\nspec: {imageRepositoryRef: {name: app}, policy: {semver: {range: 1.x}}}\n",
		},
		{
			name: "password", nightly: true, args: args, root: "GitRepository/push-config", code: "source-authentication", objects: git("wrong") + wrong + update,
			says: []string{"rejects the credentials in Secret ${NS}/wrong"}, never: []string{"push rejected"},
			broken: true,
		},
		{
			name: "secret", nightly: true, args: args, root: "GitRepository/push-config", code: "secret-missing", objects: git("gone") + update,
			says:  []string{"Secret ${NS}/gone, referenced by .spec.secretRef.name, does not exist", "of GitRepository/${NS}/push-config"},
			given: map[string]func(*fixture) string{"<user>": value("dev"), "<file>": fileWith("correct horse")},
		},
		{
			name: "rotated", nightly: true, args: args, root: "ImageUpdateAutomation/app", code: "source-authentication",
			files: map[string]string{"settings.yaml": plainMap}, objects: "${DEFAULT}\n---\n" + git("rotated") + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: rotated}\nstringData: {username: dev, password: correct horse}\n",
			says: []string{"correct the Secret in .spec.secretRef of GitRepository/${NS}/push-config"}, never: []string{"push rejected", "ImageUpdateAutomation/${NS}/app to its name"},
			then: func(f *fixture) {
				f.shell.run("flux", "wait", "source", "git", "push-config", "-n", f.namespace)
				f.shell.run("kubectl", "-n", f.namespace, "patch", "secret", "rotated", "--type=merge", `-p={"stringData":{"password":"guessed"}}`)
				f.shell.run("kubectl", "-n", f.namespace, "apply", "-f", tempFile(f.t, "update.yaml", strings.TrimPrefix(update, "---\n")))
			},
			fix: func(f *fixture) {
				f.shell.run("kubectl", "-n", f.namespace, "patch", "secret", "rotated", "--type=merge", `-p={"stringData":{"password":"correct horse"}}`)
			},
		},
	}
}

// pushFailures are automations that may not push to the branch of their repository.
func pushFailures(f *fixture) []failure {
	f.t.Helper()
	locked := newGit(f.shell, f.cluster, f.namespace+"-locked")
	image := f.cluster.Env["FLUX_SANDBOX_REGISTRY"] + "/cause/image"
	pushArtifact(f, "cause/image", "1.1.0", "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip", archive(f.t, nil))
	locked.commit("Use an image", map[string]string{"app.yaml": "image: " + image + `:1.0.0 # {"$imagepolicy": "` + f.namespace + `-locked:app"}` + "\n"})
	f.cluster.Sandbox(f.t, "git", "protect", f.namespace+"-locked", "main")
	return []failure{{
		name: "locked", args: []string{"imageupdateautomation", "app"}, root: "ImageUpdateAutomation/app", code: "image-push",
		objects: strings.ReplaceAll(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${LOCKED}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: app}
spec: {interval: 1h, image: "${REGISTRY}/cause/image", insecure: true}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: app}
spec: {imageRepositoryRef: {name: app}, policy: {semver: {range: 1.x}}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: app}, git: {checkout: {ref: {branch: main}}, commit: {author: {email: a@example.com}}, push: {branch: main}}, update: {path: ./}}
`, "${LOCKED}", locked.address),
		says: []string{"push rejected (protected branch or read-only credentials)", "allow the credentials in .spec.secretRef of GitRepository/${NS}/app to push", "set .spec.git.push.branch of ImageUpdateAutomation/${NS}/app"},
		fix: func(f *fixture) {
			f.shell.run("kubectl", "-n", f.namespace, "patch", "imageupdateautomation", "app", "--type=merge", `-p={"spec":{"git":{"push":{"branch":"updates"}}}}`)
		},
	}}
}
