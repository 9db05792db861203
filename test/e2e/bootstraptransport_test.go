package e2e_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestBootstrapTransports bootstraps over HTTPS with a private certificate authority and over
// SSH with a key that has a passphrase, from a server that requires
// credentials. Before that, a protected branch rejects the push.
func TestBootstrapTransports(t *testing.T) {
	t.Parallel()
	f := newWhole(t)
	guarded := newGit(f.shell, f.cluster, "guarded")
	f.cluster.Sandbox(t, "git", "protect", "guarded", "main")
	bootstrapFails(f.shell, f.cluster, "protected branch", bootstrapArgs(guarded)...)

	key, public := sshKey(t, "open sesame")
	f.cluster.Sandbox(t, "git", "keys", "add", public)
	lockGit(f.shell, f.cluster)
	ca := "--ca-file=" + f.cluster.Env["FLUX_SANDBOX_GIT_CA"]
	bootstrapFails(f.shell, f.cluster, "wrong password", transportArgs(f, "https", ca, "--username=dev", "--password=guessed", "--token-auth")...)
	bootstrapFails(f.shell, f.cluster, "unknown certificate authority", transportArgs(f, "https", "--username=dev", "--password=correct horse", "--token-auth")...)
	bootstrapFails(f.shell, f.cluster, "wrong passphrase", transportArgs(f, "ssh", "--private-key-file="+key, "--password=guessed")...)

	for name, args := range map[string][]string{
		"https": transportArgs(f, "https", ca, "--username=dev", "--password=correct horse", "--token-auth"),
		"ssh":   transportArgs(f, "ssh", "--private-key-file="+key, "--password=open sesame"),
	} {
		f.shell.run("flux", args...)
		f.shell.run("flux", "reconcile", "kustomization", "flux-system", "--with-source")
		f.shell.run("flux", args...)
		f.shell.run("flux", "check")
		if out := f.shell.run("flux", "diff", "kustomization", "flux-system", "--branch=main"); out != "" {
			t.Errorf("the branch that is applied differs, fetched over %s:\n%s", name, out)
		}
		if _, stderr, err := f.shell.try("flux", "diff", "kustomization", "flux-system", "--branch=none"); err == nil || !strings.Contains(stderr, `branch "none" not found in the repository`) {
			t.Errorf("a branch that does not exist, over %s: %v\n%s", name, err, stderr)
		}
		f.shell.run("flux", "uninstall", "--silent")
		t.Logf("bootstrapped over %s, twice, and uninstalled", name)
	}
}

// sshKey creates a key with a passphrase, and returns its two files.
func sshKey(t *testing.T, passphrase string) (private, public string) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	authorized, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return tempFile(t, "id_ed25519", string(pem.EncodeToMemory(block))), tempFile(t, "id_ed25519.pub", string(ssh.MarshalAuthorizedKey(authorized)))
}

// transportArgs returns the arguments of a bootstrap over a transport.
func transportArgs(f *fixture, transport string, extra ...string) []string {
	address := map[string]string{"https": "FLUX_SANDBOX_GIT_HTTPS_URL", "ssh": "FLUX_SANDBOX_GIT_SSH_URL"}[transport]
	return append([]string{"bootstrap", "git", "--url=" + f.cluster.Env[address] + "/fleet.git", "--path=clusters/" + transport, "--silent"}, extra...)
}

// bootstrapFails bootstraps with an invalid setting and checks that the error contains no
// secret and the cluster is unchanged. It returns stderr.
func bootstrapFails(sh *shell, cluster *testcluster.Cluster, what string, args ...string) string {
	sh.t.Helper()
	stdout, stderr, err := sh.try("flux", args...)
	if err == nil {
		sh.t.Fatalf("bootstrap succeeds with a %s:\n%s", what, stderr)
	}
	if stdout != "" {
		sh.t.Errorf("%s: the standard output of a failure is %q", what, stdout)
	}
	for _, secret := range []string{"guessed", "correct horse", "open sesame"} {
		if strings.Contains(stderr, secret) {
			sh.t.Errorf("%s: the error shows the secret %q:\n%s", what, secret, stderr)
		}
	}
	if _, err := cluster.Client.Get(sh.t.Context(), namespaces, "", "flux-system"); err == nil {
		sh.t.Errorf("%s: the cluster was changed", what)
	}
	sh.t.Logf("%s:\n%s", what, stderr)
	return stderr
}

// lockGit makes the Git server of a sandbox require a password.
func lockGit(sh *shell, cluster *testcluster.Cluster) {
	sh.t.Helper()
	args := []string{"git", "credentials", "set", "--username=dev", "--password-stdin", "--dir", cluster.Dir}
	if stdout, stderr, err := sh.tryWith("correct horse\n", "flux-sandbox", args...); err != nil {
		sh.t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
}
