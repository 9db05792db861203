package kubeconfig

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

const twoClusters = `apiVersion: v1
kind: Config
current-context: near
clusters:
- {name: near, cluster: {server: "https://near.example.com"}}
- {name: far, cluster: {server: "https://far.example.com"}}
users:
- {name: alice, user: {token: token-of-alice}}
- {name: bob, user: {username: bob, password: secret}}
contexts:
- {name: near, context: {cluster: near, user: alice, namespace: apps}}
- {name: far, context: {cluster: far, user: bob}}
`

// parsed parses a command line, with KUBECONFIG set to a file.
func parsed(t *testing.T, kubeconfig string, line ...string) *Flags {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if kubeconfig != "" {
		if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	f := New(os.Getenv)
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Add(fs)
	if err := fs.Parse(line); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestContextsAndOverrides(t *testing.T) {
	for _, c := range []struct {
		line                           string
		host, token, namespace, person string
	}{
		{"", "https://near.example.com", "token-of-alice", "apps", "alice"},
		{"--context=far", "https://far.example.com", "", "default", "bob"},
		{"--cluster=far", "https://far.example.com", "token-of-alice", "apps", "alice"},
		{"--context=far --user=alice", "https://far.example.com", "token-of-alice", "default", "alice"},
		{"--server=https://127.0.0.1:7", "https://127.0.0.1:7", "token-of-alice", "apps", "alice"},
		{"--token=mine", "https://near.example.com", "mine", "apps", "alice"},
	} {
		f := parsed(t, twoClusters, strings.Fields(c.line)...)
		cfg, err := f.REST()
		if err != nil {
			t.Errorf("%q: %v", c.line, err)
			continue
		}
		namespace, err := f.Namespace()
		if err != nil || cfg.Host != c.host || cfg.BearerToken != c.token || namespace != c.namespace || f.User() != c.person {
			t.Errorf("%q: %s, %q, %s, %s, %v", c.line, cfg.Host, cfg.BearerToken, namespace, f.User(), err)
		}
	}
}

func TestImpersonation(t *testing.T) {
	line := []string{"--as=carol", "--as-uid=7", "--as-group=dev", "--as-group=ops", "--as-user-extra=team=a,b", "--as-user-extra=team=c"}
	cfg, err := parsed(t, twoClusters, line...).REST()
	if err != nil {
		t.Fatal(err)
	}
	as := cfg.Impersonate
	if as.UserName != "carol" || as.UID != "7" || !slices.Equal(as.Groups, []string{"dev", "ops"}) || !slices.Equal(as.Extra["team"], []string{"a,b", "c"}) {
		t.Errorf("impersonates %+v", as)
	}
	if _, err := parsed(t, twoClusters, "--as=carol", "--as-user-extra=team").REST(); err == nil || !strings.Contains(err.Error(), `"team": must be key=value`) {
		t.Errorf("an extra without a value: %v", err)
	}
}

// TestImpersonationInAPod checks that the in-cluster configuration impersonates, which client-go
// does not do.
func TestImpersonationInAPod(t *testing.T) {
	cfg := &rest.Config{BearerToken: "of the pod"}
	err := impersonate(cfg, api.AuthInfo{Impersonate: "carol", ImpersonateGroups: []string{"dev"}, Token: "unused"})
	if err != nil || cfg.Impersonate.UserName != "carol" || !slices.Equal(cfg.Impersonate.Groups, []string{"dev"}) || cfg.BearerToken != "of the pod" {
		t.Errorf("%+v, %v", cfg, err)
	}
	file := &rest.Config{Impersonate: rest.ImpersonationConfig{UserName: "dave", Groups: []string{"ops"}}}
	err = impersonate(file, api.AuthInfo{ImpersonateUID: "7"})
	if is := file.Impersonate; err != nil || is.UserName != "dave" || is.UID != "7" || !slices.Equal(is.Groups, []string{"ops"}) {
		t.Errorf("%+v, %v", is, err)
	}
}

// TestGroupsAlone checks that groups require a user, inside and outside of a pod.
func TestGroupsAlone(t *testing.T) {
	if _, err := parsed(t, twoClusters, "--as-group=dev").REST(); err == nil || !strings.Contains(err.Error(), "without impersonating a user") {
		t.Errorf("groups without a user: %v", err)
	}
	pod := &rest.Config{Host: "https://10.0.0.1", BearerToken: "of the pod"}
	if err := impersonate(pod, api.AuthInfo{ImpersonateGroups: []string{"dev"}}); err == nil {
		t.Error("groups without a user are accepted in a pod")
	}
}

func TestServerWithoutKubeconfig(t *testing.T) {
	cfg, err := parsed(t, "", "--server=https://127.0.0.1:7", "--token=mine", "--insecure-skip-tls-verify").REST()
	if err != nil || cfg.Host != "https://127.0.0.1:7" || cfg.BearerToken != "mine" || !cfg.Insecure {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func TestNoClusterIsGuessed(t *testing.T) {
	f := parsed(t, "")
	if _, err := f.REST(); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), os.Getenv("KUBECONFIG")) {
		t.Errorf("no kubeconfig: %v", err)
	}
	if _, err := parsed(t, twoClusters, "--context=middle").REST(); err == nil || !strings.Contains(err.Error(), "middle") {
		t.Errorf("unknown context: %v", err)
	}
	if _, err := parsed(t, twoClusters, "--kubeconfig=/nonexistent/config").REST(); err == nil || !strings.Contains(err.Error(), "/nonexistent/config") {
		t.Errorf("missing kubeconfig: %v", err)
	}
}

func TestOverlay(t *testing.T) {
	for _, c := range []struct {
		line, namespace, want string
	}{
		{"", "web", "near near alice web"},
		{"--context=far", "", "far far bob "},
		{"--context=far", "web", "far far bob web"},
		{"--context=near", "", "near near alice apps"},
	} {
		f := parsed(t, twoClusters, strings.Fields(c.line)...)
		overlay, files, err := f.Overlay(c.namespace)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"token", "secret", "example.com"} {
			if strings.Contains(string(overlay), secret) {
				t.Errorf("%q: the overlay contains %s:\n%s", c.line, secret, overlay)
			}
		}
		path := filepath.Join(t.TempDir(), "overlay")
		if err := os.WriteFile(path, overlay, 0o600); err != nil {
			t.Fatal(err)
		}
		// Another process reads the overlay first, then the user's files.
		t.Setenv("KUBECONFIG", strings.Join(append([]string{path}, files...), string(os.PathListSeparator)))
		raw, err := New(os.Getenv).Raw()
		if err != nil {
			t.Fatal(err)
		}
		chosen := raw.Contexts[raw.CurrentContext]
		got := strings.Join([]string{raw.CurrentContext, chosen.Cluster, chosen.AuthInfo, chosen.Namespace}, " ")
		if got != c.want || len(raw.AuthInfos) != 2 {
			t.Errorf("%q: %q and %d users, want %q", c.line, got, len(raw.AuthInfos), c.want)
		}
	}
	for kubeconfig, line := range map[string]string{twoClusters: "--context=none", "": "", "apiVersion: v1\nkind: Config\n": ""} {
		if overlay, _, err := parsed(t, kubeconfig, strings.Fields(line)...).Overlay("web"); err == nil {
			t.Errorf("%q: %s", line, overlay)
		}
	}
}
