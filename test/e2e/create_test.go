package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
)

// create runs `flux create`, whose output must end with the messages.
func create(f *fixture, args []string, messages ...string) {
	f.t.Helper()
	stdout, stderr, err := f.shell.try("flux", append([]string{"create"}, args...)...)
	if err != nil {
		f.t.Fatalf("flux create %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	if end := strings.Join(messages, "\n") + "\n"; !strings.HasSuffix(stderr, end) {
		f.t.Errorf("flux create %s does not end with\n%sbut prints\n%s", strings.Join(args, " "), end, stderr)
	}
}

// checkField checks a field of an object in the namespace of the fixture.
func checkField(f *fixture, r kube.Resource, name, path, want string) {
	f.t.Helper()
	o, err := f.cluster.Client.Get(f.t.Context(), r, f.namespace, name)
	if err != nil {
		f.t.Fatalf("getting an object that should be applied: %v", err)
	}
	if got := text(o, path); got != want {
		f.t.Errorf("%s of %s %s is %q, want %q", path, r.Kind, name, got, want)
	}
}

// configMapFrom returns a manifest that contains its origin.
func configMapFrom(f *fixture, from string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {from: %s}\n", f.namespace, from)
}

// createKustomization creates a Kustomization that applies a path of a source to the namespace.
func createKustomization(f *fixture, source, revision string, more ...string) {
	f.t.Helper()
	args := []string{"kustomization", "app", "--source=" + source, "--path=./deploy", "--prune", "--interval=1h"}
	create(f, append(args, more...), "✔ Kustomization app is ready", "✔ applied revision "+revision)
}

// createGitRepository creates a GitRepository of the repository.
func createGitRepository(f *fixture) {
	f.t.Helper()
	create(f, []string{"source", "git", "app", "--url=" + f.git.address, "--secret-ref=git", "--branch=main", "--interval=1h"},
		"✔ GitRepository source app is ready", "✔ fetched revision "+f.git.revision())
}

func TestCreateGit(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	f.git.commit("Run app", map[string]string{"deploy/app.yaml": configMapFrom(f, "git")})
	createGitRepository(f)
	createKustomization(f, "GitRepository/app", f.git.revision(), "--health-check-timeout=1m", "--wait")
	checkField(f, configMaps, "app", "data.from", "git")

	// An error in the repository is the reason why create fails.
	f.git.commit("Break app", map[string]string{"broken/app.yaml": "kind: Nothing\n"})
	f.shell.run("flux", "reconcile", "source", "git", "app")
	_, stderr, err := f.shell.try("flux", "create", "kustomization", "broken", "--source=GitRepository/app", "--path=./broken", "--interval=1h")
	if err == nil || !strings.Contains(stderr, "✗ Kustomization "+f.namespace+"/broken is not ready: BuildFailed: ") {
		t.Errorf("creating a broken Kustomization: %v\n%s", err, stderr)
	}
}

// TestCreateDeployKey creates a source over SSH with a key that create generates and that is
// authorized afterwards.
func TestCreateDeployKey(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	f.git.commit("Run app", map[string]string{"deploy/app.yaml": configMapFrom(f, "ssh")})
	_, somebody := sshKey(t, "unused")
	f.shell.run("flux-sandbox", "git", "keys", "add", somebody, "--dir", f.cluster.Dir)
	args := []string{"source", "git", "app", "--url=" + f.cluster.Env["FLUX_SANDBOX_GIT_SSH_URL"] + "/" + f.namespace + ".git", "--branch=main", "--silent", "--interval=1h"}

	_, stderr, err := f.shell.try("flux", append([]string{"create"}, args...)...)
	_, rest, shown := strings.Cut(stderr, "✔ public key: ")
	key, _, _ := strings.Cut(rest, "\n")
	if err == nil || !shown || !strings.Contains(rest, "✗ GitRepository "+f.namespace+"/app is not ready: ") {
		t.Fatalf("a key without access: %v\n%s", err, stderr)
	}
	f.shell.run("flux-sandbox", "git", "keys", "add", tempFile(t, "key.pub", key+"\n"), "--dir", f.cluster.Dir)
	create(f, args, "✔ GitRepository source app is ready", "✔ fetched revision "+f.git.revision())
	createKustomization(f, "GitRepository/app", f.git.revision())
	checkField(f, configMaps, "app", "data.from", "ssh")
}

// TestCreateSOPS applies a Secret that is encrypted with age in the repository.
func TestCreateSOPS(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	key := filepath.Join(t.TempDir(), "age.agekey")
	plain := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\n  namespace: " + f.namespace + "\nstringData:\n  token: open sesame\n"
	cmd := exec.CommandContext(t.Context(), buildOutside(t, "sops"), key)
	cmd.Stdin, cmd.Stderr = strings.NewReader(plain), os.Stderr
	encrypted, err := cmd.Output()
	if err != nil {
		t.Fatalf("encrypting a Secret: %v", err)
	}
	if strings.Contains(string(encrypted), "sesame") {
		t.Fatalf("the Secret is not encrypted:\n%s", encrypted)
	}
	f.git.commit("Keep a secret", map[string]string{"deploy/secret.yaml": string(encrypted)})
	f.shell.run("flux", "create", "secret", "sops", "age", "--age-key-file="+key)
	createGitRepository(f)
	createKustomization(f, "GitRepository/app", f.git.revision(), "--decryption-provider=sops", "--decryption-secret=age")
	checkField(f, secrets, "app", "data.token", "b3BlbiBzZXNhbWU=")
}
