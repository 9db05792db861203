package e2e_test

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
)

// TestCreateImageUpdate checks that a new tag is committed to the repository.
func TestCreateImageUpdate(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	image := f.cluster.Env["FLUX_SANDBOX_REGISTRY"] + "/image/app"
	pushed := func(tag string) {
		pushArtifact(f, "image/app", tag, "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip", archive(t, nil))
	}
	manifest := func(tag string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  image: " + image + ":" + tag + ` # {"$imagepolicy": "` + f.namespace + `:app"}` + "\n"
	}
	pushed("1.0.0")
	pushed("1.1.0")
	pushed("2.0.0")
	f.git.commit("Run app", map[string]string{"deploy/app.yaml": manifest("1.0.0")})
	createGitRepository(f)
	create(f, []string{"image", "repository", "app", "--image=" + image, "--interval=1h"},
		"✔ ImageRepository app is ready", "✔ scan fetched 3 tags")
	create(f, []string{"image", "policy", "app", "--image-ref=app", "--select-semver=1.x"},
		"✔ ImagePolicy app is ready", "✔ selected tag 1.1.0")
	f.shell.run("flux", "create", "image", "update", "app", "--git-repo-ref=app", "--git-repo-path=./deploy", "--checkout-branch=main",
		"--author-name=bot", "--author-email=bot@example.com", "--commit-template=Update app", "--interval=1h")
	checkCommit(f, "Update app", manifest("1.1.0"))

	pushed("1.2.0")
	f.shell.run("flux", "reconcile", "image", "repository", "app")
	f.eventually("the policy to choose 1.2.0", resource(f.t, "ImagePolicy"), kube.Selection{Namespace: f.namespace, Name: "app"}, func(e kube.Event) bool {
		return text(e.Object, "status.latestRef.tag") == "1.2.0"
	})
	f.shell.run("flux", "reconcile", "image", "update", "app")
	checkCommit(f, "Update app", manifest("1.2.0"))
}

// checkCommit checks the newest commit and the manifest in it.
func checkCommit(f *fixture, subject, manifest string) {
	f.t.Helper()
	f.git.run("pull", "--quiet", "--rebase")
	if got := strings.TrimSpace(f.git.run("log", "-1", "--format=%an: %s")); got != "bot: "+subject {
		f.t.Errorf("the newest commit is %q", got)
	}
	if got := f.git.run("show", "HEAD:deploy/app.yaml"); got != manifest {
		f.t.Errorf("the manifest is\n%swant\n%s", got, manifest)
	}
}
