package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestCreate creates objects of every kind with `flux create` only, each with its
// external dependencies, and checks that the real controllers reconcile
// them.
func TestCreate(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.run("flux", "install", "--components-extra=image-reflector-controller,image-automation-controller")
	t.Run("chapters", func(t *testing.T) {
		for name, tell := range map[string]func(*story){
			"git": (*story).gitAndKustomization, "helm": (*story).helmAndRelease, "oci": (*story).ociAndKustomization,
			"bucket": (*story).bucketAndKustomization, "alert": (*story).alertAndProvider, "image": (*story).imageUpdate,
			"sops": (*story).sopsSecrets, "tenants": (*story).tenants, "receiver": (*story).receivers,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tell(s.chapter(t))
			})
		}
	})
	// After the first key is added, the Git server requires credentials.
	t.Run("ssh", func(t *testing.T) { s.chapter(t).deployKey() })
}

// chapter returns the story with its own namespace and repository.
func (s *story) chapter(t *testing.T) *story {
	t.Helper()
	c := *s
	c.T, c.namespace = t, path.Base(t.Name())
	c.env = append(slices.Clone(s.env), "FLUX_SYSTEM_NAMESPACE="+c.namespace)
	c.run("kubectl", "create", "namespace", c.namespace)
	c.repository(c.namespace)
	return &c
}

// repository creates a repository and uses it for commits from now on.
func (s *story) repository(name string) {
	s.Helper()
	s.cluster.Sandbox(s.T, "git", "create", name)
	s.url = s.cluster.Env["FLUX_SANDBOX_GIT_URL"] + "/" + name + ".git"
	s.clone = filepath.Join(s.TempDir(), name)
}

// create runs `flux create`, whose output must end with the messages.
func (s *story) create(args []string, messages ...string) {
	s.Helper()
	stdout, stderr, err := s.try("flux", append([]string{"create"}, args...)...)
	if err != nil {
		s.Fatalf("flux create %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	if end := strings.Join(messages, "\n") + "\n"; !strings.HasSuffix(stderr, end) {
		s.Errorf("flux create %s does not end with\n%sbut prints\n%s", strings.Join(args, " "), end, stderr)
	}
}

// head returns the revision of the repository in the format of Flux.
func (s *story) head() string {
	s.Helper()
	return "main@sha1:" + strings.TrimSpace(s.run("git", "rev-parse", "HEAD"))
}

var (
	configMaps = kube.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap"}
	secrets    = kube.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret"}
)

// has checks a field of an object in the namespace of the chapter.
func (s *story) has(r kube.Resource, name, path, want string) {
	s.Helper()
	o, err := s.cluster.Client.Get(s.Context(), r, s.namespace, name)
	if err != nil {
		s.Fatalf("getting an object that should be applied: %v", err)
	}
	if got := text(o, path); got != want {
		s.Errorf("%s of %s %s is %q, want %q", path, r.Kind, name, got, want)
	}
}

// configMap returns a manifest that names its origin.
func (s *story) configMap(from string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {from: %s}\n", s.namespace, from)
}

// kustomization creates a Kustomization that applies a path of a source to the namespace.
func (s *story) kustomization(source, revision string, more ...string) {
	s.Helper()
	args := []string{"kustomization", "app", "--source=" + source, "--path=./deploy", "--prune", "--interval=1h"}
	s.create(append(args, more...), "✔ Kustomization app is ready", "✔ applied revision "+revision)
}

// gitRepository creates a GitRepository of the repository.
func (s *story) gitRepository() {
	s.Helper()
	s.create([]string{"source", "git", "app", "--url=" + s.url, "--branch=main", "--interval=1h"},
		"✔ GitRepository source app is ready", "✔ fetched revision "+s.head())
}

func (s *story) gitAndKustomization() {
	s.commit("Run app", map[string]string{"deploy/app.yaml": s.configMap("git")})
	s.gitRepository()
	s.kustomization("GitRepository/app", s.head(), "--health-check-timeout=1m", "--wait")
	s.has(configMaps, "app", "data.from", "git")

	// An error in the repository is the reason with which create fails.
	s.commit("Break app", map[string]string{"broken/app.yaml": "kind: Nothing\n"})
	s.run("flux", "reconcile", "source", "git", "app")
	_, stderr, err := s.try("flux", "create", "kustomization", "broken", "--source=GitRepository/app", "--path=./broken", "--interval=1h")
	if err == nil || !strings.Contains(stderr, "✗ Kustomization git/broken is not ready: BuildFailed: ") {
		s.Errorf("creating a broken Kustomization: %v\n%s", err, stderr)
	}
}

// deployKey creates a source over SSH with a key that create generates and that is
// authorized afterwards.
func (s *story) deployKey() {
	s.commit("Run app", map[string]string{"deploy/app.yaml": s.configMap("ssh")})
	_, somebody := s.sshKey("unused")
	s.run("flux-sandbox", "git", "keys", "add", somebody, "--dir", s.cluster.Dir)
	args := []string{"source", "git", "app", "--url=" + s.cluster.Env["FLUX_SANDBOX_GIT_SSH_URL"] + "/ssh.git", "--branch=main", "--silent", "--interval=1h"}

	_, stderr, err := s.try("flux", append([]string{"create"}, args...)...)
	_, rest, shown := strings.Cut(stderr, "✔ public key: ")
	key, _, _ := strings.Cut(rest, "\n")
	if err == nil || !shown || !strings.Contains(rest, "✗ GitRepository ssh/app is not ready: ") {
		s.Fatalf("a key without access: %v\n%s", err, stderr)
	}
	s.run("flux-sandbox", "git", "keys", "add", s.write("key.pub", key+"\n"), "--dir", s.cluster.Dir)
	s.create(args, "✔ GitRepository source app is ready", "✔ fetched revision "+s.head())
	s.kustomization("GitRepository/app", s.head())
	s.has(configMaps, "app", "data.from", "ssh")
}

// sopsSecrets applies a Secret that is encrypted with age in the repository.
func (s *story) sopsSecrets() {
	key := filepath.Join(s.TempDir(), "age.agekey")
	plain := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\n  namespace: sops\nstringData:\n  token: open sesame\n"
	cmd := exec.CommandContext(s.Context(), s.outside("sops"), key)
	cmd.Stdin, cmd.Stderr = strings.NewReader(plain), os.Stderr
	encrypted, err := cmd.Output()
	if err != nil {
		s.Fatalf("encrypting a Secret: %v", err)
	}
	if strings.Contains(string(encrypted), "sesame") {
		s.Fatalf("the Secret is not encrypted:\n%s", encrypted)
	}
	s.commit("Keep a secret", map[string]string{"deploy/secret.yaml": string(encrypted)})
	s.run("flux", "create", "secret", "sops", "age", "--namespace=sops", "--age-key-file="+key)
	s.gitRepository()
	s.kustomization("GitRepository/app", s.head(), "--decryption-provider=sops", "--decryption-secret=age")
	s.has(secrets, "app", "data.token", "b3BlbiBzZXNhbWU=")
}

// tenants checks that the permissions of a tenant's service account apply.
func (s *story) tenants() {
	s.run("flux", "create", "tenant", "blue", "--with-namespace=blue", "--cluster-role=edit")
	s.run("flux", "create", "tenant", "red", "--with-namespace=red", "--cluster-role=edit")
	mine := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {by: %s}\n"
	for _, name := range []string{"blue", "red"} {
		tenant := *s
		tenant.namespace = name
		tenant.env = append(slices.Clone(s.env), "FLUX_SYSTEM_NAMESPACE="+name)
		tenant.repository(name)
		tenant.commit("Run app", map[string]string{"deploy/app.yaml": fmt.Sprintf(mine, name, name)})
		tenant.gitRepository()
		tenant.kustomization("GitRepository/app", tenant.head(), "--service-account="+name)
		tenant.has(configMaps, "app", "data.by", name)
		if name == "red" {
			tenant.trespass("blue")
			blue := tenant
			blue.namespace = "blue"
			blue.has(configMaps, "app", "data.by", "blue")
		}
	}
}

// trespass checks that the tenant cannot change another namespace.
func (s *story) trespass(into string) {
	s.Helper()
	s.commit("Take over", map[string]string{"grab/app.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {by: me}\n", into)})
	s.run("flux", "reconcile", "source", "git", "app")
	_, stderr, err := s.try("flux", "create", "kustomization", "grab", "--source=GitRepository/app", "--path=./grab",
		"--service-account="+s.namespace, "--interval=1h")
	want := fmt.Sprintf(`User "system:serviceaccount:%s:%s" cannot patch resource "configmaps" in API group "" in the namespace "%s"`, s.namespace, s.namespace, into)
	if err == nil || !strings.Contains(stderr, want) {
		s.Errorf("a tenant's Kustomization reaches into %s: %v\n%s", into, err, stderr)
	}
}

// outside builds a program that runs outside of the cluster.
func (s *story) outside(name string) string {
	s.Helper()
	program := filepath.Join(s.TempDir(), name)
	cmd := exec.CommandContext(s.Context(), "go", "build", "-C", filepath.Join("..", "outside"), "-o", program, "./"+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return program
}
