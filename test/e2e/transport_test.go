package e2e_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/kube"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestTransports bootstraps over HTTPS with a private certificate authority and over
// SSH with a key that has a passphrase, from a server that requires
// credentials.
func TestTransports(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	key, public := s.sshKey("open sesame")
	s.run("flux-sandbox", "git", "keys", "add", public, "--dir", s.cluster.Dir)
	s.feed("correct horse\n", "flux-sandbox", "git", "credentials", "set", "--username=dev", "--password-stdin", "--dir", s.cluster.Dir)

	s.refused("wrong password", s.args("https", "--ca-file="+s.cluster.Env["FLUX_SANDBOX_GIT_CA"], "--username=dev", "--password=guessed", "--token-auth")...)
	s.refused("unknown certificate authority", s.args("https", "--username=dev", "--password=correct horse", "--token-auth")...)
	s.refused("wrong passphrase", s.args("ssh", "--private-key-file="+key, "--password=guessed")...)

	for name, args := range map[string][]string{
		"https": s.args("https", "--ca-file="+s.cluster.Env["FLUX_SANDBOX_GIT_CA"], "--username=dev", "--password=correct horse", "--token-auth"),
		"ssh":   s.args("ssh", "--private-key-file="+key, "--password=open sesame"),
	} {
		s.run("flux", args...)
		s.run("flux", "reconcile", "kustomization", "flux-system", "--with-source")
		s.run("flux", args...)
		s.run("flux", "check")
		if out := s.run("flux", "diff", "kustomization", "flux-system", "--branch=main"); out != "" {
			t.Errorf("the branch that is applied differs, fetched over %s:\n%s", name, out)
		}
		if _, stderr, err := s.try("flux", "diff", "kustomization", "flux-system", "--branch=none"); err == nil || !strings.Contains(stderr, `branch "none" not found in the repository`) {
			t.Errorf("a branch that does not exist, over %s: %v\n%s", name, err, stderr)
		}
		s.run("flux", "uninstall", "--silent")
		s.Logf("bootstrapped over %s, twice, and uninstalled", name)
	}
}

// TestProtectedBranch checks that a rejected push leaves the cluster unchanged.
func TestProtectedBranch(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.cluster.Sandbox(t, "git", "protect", "fleet", "main")
	s.refused("protected branch", s.args("http", "--allow-insecure-http", "--username=dev", "--password=any", "--token-auth")...)
}

// sshKey creates a key with a passphrase, and returns its two files.
func (s *story) sshKey(passphrase string) (private, public string) {
	s.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	if err != nil {
		s.Fatal(err)
	}
	authorized, err := ssh.NewPublicKey(pub)
	if err != nil {
		s.Fatal(err)
	}
	return s.write("id_ed25519", string(pem.EncodeToMemory(block))), s.write("id_ed25519.pub", string(ssh.MarshalAuthorizedKey(authorized)))
}

// args returns the arguments of a bootstrap over a transport.
func (s *story) args(transport string, extra ...string) []string {
	address := map[string]string{"http": "FLUX_SANDBOX_GIT_URL", "https": "FLUX_SANDBOX_GIT_HTTPS_URL", "ssh": "FLUX_SANDBOX_GIT_SSH_URL"}[transport]
	return append([]string{"bootstrap", "git", "--url=" + s.cluster.Env[address] + "/fleet.git", "--path=clusters/" + transport, "--silent"}, extra...)
}

var namespaces = kube.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace", ClusterScoped: true}

// refused bootstraps with an invalid setting and checks that the error has no secret
// and the cluster is unchanged. It returns stderr.
func (s *story) refused(what string, args ...string) string {
	s.Helper()
	stdout, stderr, err := s.try("flux", args...)
	if err == nil {
		s.Fatalf("bootstrap succeeds with a %s:\n%s", what, stderr)
	}
	if stdout != "" {
		s.Errorf("%s: the standard output of a failure is %q", what, stdout)
	}
	for _, secret := range []string{"guessed", "correct horse", "open sesame"} {
		if strings.Contains(stderr, secret) {
			s.Errorf("%s: the error shows the secret %q:\n%s", what, secret, stderr)
		}
	}
	if _, err := s.cluster.Client.Get(s.Context(), namespaces, "", "flux-system"); err == nil {
		s.Errorf("%s: the cluster was changed", what)
	}
	s.Logf("%s:\n%s", what, stderr)
	return stderr
}

// feed runs a command of the sandbox with standard input.
func (s *story) feed(input, name string, args ...string) {
	s.Helper()
	file := s.write("input", input)
	in, err := os.Open(file)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	s.stdin = in
	defer func() { s.stdin = nil }()
	s.run(name, args...)
}
