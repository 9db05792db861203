package script_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
	"github.com/fluxkit/flux/test/support/testproxy"
)

// canaries are credentials of all kinds that a process may be given. No ordinary
// text holds one.
var canaries = map[string]string{
	"GITHUB_TOKEN": "cnry-github-7d1f", "GITLAB_TOKEN": "cnry-gitlab-7d1f", "GITEA_TOKEN": "cnry-gitea-7d1f", "BITBUCKET_TOKEN": "cnry-bitbucket-7d1f",
	"GIT_PASSWORD": "cnry-git-password", "AWS_SECRET_ACCESS_KEY": "cnry-aws-secret", "SOPS_AGE_KEY": "AGE-SECRET-KEY-1CNRY",
	"HTTPS_PROXY": "http://me:cnry-proxy-pass@127.0.0.1:1",
}

const canaryKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {%s}}]
`

// echo answers every request with all that it was sent: credentials as they came
// and decoded, in the message, in a warning and in other headers.
func echo(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := fmt.Sprint(r.Header, r.URL.String())
		if user, password, ok := r.BasicAuth(); ok {
			sent += " " + user + ":" + password + " " + base64.StdEncoding.EncodeToString([]byte(password))
		}
		sent = strings.ReplaceAll(sent, "\n", " ")
		message, _ := json.Marshal("you sent " + sent) // a string has no error
		w.Header().Set("Warning", fmt.Sprintf("299 - %s", message))
		w.Header().Set("Www-Authenticate", `Basic realm="`+strings.ReplaceAll(sent, `"`, "'")+`"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":"Forbidden","message":%s,"errors":[{"code":"DENIED","message":%s}],"error":%s}`, status, message, message, message)
	})
}

// canaryArgs are the arguments of a command with as many credentials as it takes.
func canaryArgs(path, address string) []string {
	args := workOf(path)
	host := strings.TrimPrefix(address, "http://")
	withLogin := strings.Replace(address, "http://", "http://me:cnry-url-password@", 1)
	words := strings.Fields(path)
	switch {
	case len(words) < 3:
	case slices.Contains([]string{"push", "pull", "tag", "list"}, words[1]):
		args = []string{"oci://" + host + "/app:v1", "--creds", "me:cnry-creds-password", "--insecure-registry"}
		switch words[1] {
		case "push":
			args = append(args, "--path", ".", "--source", withLogin+"/x?access_token=cnry-query-token", "--revision", "main@sha1:a")
		case "pull":
			args = append(args, "--output", ".")
		case "tag":
			args = append(args, "--tag", "v2")
		}
	case path == "flux bootstrap git":
		args = []string{"--url", address + "/fleet", "--path", "x", "--password", "cnry-flag-password", "--username", "me", "--token-auth", "--allow-insecure-http", "--silent"}
	case words[1] == "bootstrap" && len(words) > 2:
		args = []string{"--owner=o", "--repository=r", "--hostname", host, "--token-auth"}
	case strings.HasPrefix(path, "flux create secret git"):
		args = []string{"app", "--url", withLogin + "/x", "--username", "me", "--password", "cnry-flag-password"}
	case strings.HasPrefix(path, "flux create source"):
		args = []string{"app", "--url", withLogin + "/x?token=cnry-query-token"}
	}
	return args
}

// TestCanary runs every command against a server that sends every credential
// back, with each way to authenticate: none of them is printed or written.
func TestCanary(t *testing.T) {
	t.Parallel()
	users := map[string]string{
		"token": `token: cnry-kube-token`, "password": `username: me, password: cnry-kube-password`,
		"exec plugin": `exec: {apiVersion: client.authentication.k8s.io/v1, command: ` + execPlugin(t) + `, interactiveMode: Never}`,
	}
	paths := commandPaths(root.NewRoot(app.New(nil, nil, nil, func(string) string { return "" }, time.Now), nil))
	var echoed sync.Map
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" || strings.Contains(fmt.Sprint(r.Header), "cnry") {
				echoed.Store(r.UserAgent()+r.URL.Path, true)
			}
			echo(status).ServeHTTP(w, r)
		})
		// Credentials of a kubeconfig are sent over TLS only.
		cluster, server := serveTLS(t, handler), httptest.NewServer(handler)
		t.Cleanup(server.Close)
		for how, user := range users {
			if how == "exec plugin" && status != http.StatusForbidden { // once is enough
				continue
			}
			dir := t.TempDir()
			kubeconfig := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, canaryKubeconfig, cluster.URL, user), 0o600); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			slots := make(chan struct{}, 4*runtime.NumCPU())
			for _, path := range paths {
				if path == "flux" {
					continue
				}
				wg.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					args := slices.Concat(strings.Fields(path)[1:], canaryArgs(path, server.URL), []string{"--timeout=3s", "--kubeconfig=" + kubeconfig})
					stdout, stderr := runCanary(t, dir, args)
					for where, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
						if strings.Contains(text, "cnry") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("me:cnry"))[:8]) {
							t.Errorf("%d, %s: flux %s prints a credential on %s:\n%s", status, how, strings.Join(args, " "), where, text)
						}
					}
				})
			}
			wg.Wait()
			withoutCanary(t, dir)
		}
	}
	requests := 0
	echoed.Range(func(any, any) bool { requests++; return true })
	if requests < 30 {
		t.Errorf("the server was sent credentials at %d addresses only", requests)
	}
}

// serveTLS serves over TLS until the test ends.
func serveTLS(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	certificate, err := testproxy.Certify(filepath.Join(t.TempDir(), "ca.crt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// execPlugin writes an exec plugin of a kubeconfig, which prints a token.
func execPlugin(t *testing.T) string {
	t.Helper()
	plugin := filepath.Join(t.TempDir(), "plugin")
	answer := `{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "cnry-exec-token"}}`
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\necho '"+answer+"'\n"), 0o755); err != nil { // it has to be executable
		t.Fatal(err)
	}
	return plugin
}

// runCanary runs a command line with all canaries in the environment.
func runCanary(t *testing.T, dir string, args []string) (stdout, stderr string) {
	env := map[string]string{"HOME": dir, "PATH": dir, "FLUXCD_PLUGINS": filepath.Join(dir, "plugins"), "FLUXCD_PLUGIN_CATALOG": filepath.Join(dir, "catalog")}
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(name string) string { return env[name] + canaries[name] }, time.Now)
	a.DiagnosisTimeout = time.Second
	a.Environ = func() []string {
		var all []string
		for name, value := range canaries {
			all = append(all, name+"="+value)
		}
		return all
	}
	root.Run(t.Context(), a, args)
	if os.Getenv("SHOW") != "" {
		t.Logf("flux %s\n%s%s", strings.Join(args, " "), clip(out.String()), clip(err.String()))
	}
	return out.String(), err.String()
}

// withoutCanary fails where a file holds a canary.
func withoutCanary(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("cnry")) {
			t.Errorf("%s holds a credential", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
