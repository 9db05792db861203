package script_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// children records the arguments and the environment of the programs that flux starts.
type children struct{ dir, bin, record string }

// newChildren puts flux in a folder with wrappers of the programs that it starts.
func newChildren(t *testing.T) children {
	t.Helper()
	c := children{dir: t.TempDir()}
	c.bin, c.record = filepath.Join(c.dir, "bin"), filepath.Join(c.dir, "record")
	flux, err := exec.LookPath("flux")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(flux)
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(flux), helper.Program))
	if err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"flux":         string(program),
		helper.Program: c.wrapper(helper.Program) + "exec " + real + ` "$@"` + "\n",
		"git":          c.wrapper("git") + "exec " + git + ` "$@"` + "\n",
		"gh":           c.wrapper("gh") + "echo cnry-gh-token\n",
		"flux-hello":   c.wrapper("flux-hello"),
	} {
		if err := errors.Join(os.MkdirAll(c.bin, 0o755), os.WriteFile(filepath.Join(c.bin, name), []byte(text), 0o755)); err != nil { // programs have to be executable
			t.Fatal(err)
		}
	}
	return c
}

// wrapper is the beginning of a script that records how it is run, without other programs: PATH may
// be empty.
func (c children) wrapper(name string) string {
	return "#!/bin/sh\n{ echo \"== " + name + " $*\"; export -p; } >> " + c.record + "\n"
}

// run runs flux with all canaries and with traces of Git in the environment.
func (c children) run(t *testing.T, folder, stdin string, more []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "flux"), args...)
	cmd.Dir, cmd.Stdin = folder, strings.NewReader(stdin)
	cmd.Env = append([]string{
		"HOME=" + filepath.Join(c.dir, "home"), "TMPDIR=" + filepath.Join(c.dir, "tmp"), "PATH=" + c.bin + ":" + os.Getenv("PATH"), "FLUX_SYSTEM_NAMESPACE=flux-system",
		"FLUX_TIMEOUT=30s", "GIT_TRACE=1", "GIT_TRACE_CURL=" + filepath.Join(c.dir, "home", "trace"), "GIT_CURL_VERBOSE=1", "GIT_TRACE_REDACT=0", "GIT_TRACE2_ENV_VARS=GITHUB_TOKEN", "GIT_TRACE2=1",
	}, more...)
	for name, value := range canaries {
		if name != "HTTPS_PROXY" && !slices.ContainsFunc(more, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("flux %s does not end: %v\n%s", strings.Join(args, " "), err, out)
	}
	if bytes.Contains(out, []byte("cnry")) || bytes.Contains(out, []byte("trace: ")) || bytes.Contains(out, []byte("Send header")) {
		t.Errorf("flux %s prints a credential, or a trace of Git:\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}

// started returns the records of a program, of which there must be one.
func (c children) started(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(c.record)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for record := range strings.SplitSeq(string(text), "== ") {
		if strings.HasPrefix(record, name+" ") {
			found = append(found, record)
		}
	}
	if len(found) == 0 {
		t.Errorf("%s was not started:\n%s", name, text)
	}
	return found
}

// runGit runs git in a folder, not under flux.
func runGit(t *testing.T, folder string, args ...string) {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// shallow makes a shallow clone of a repository with two revisions of a cluster, whose origin has
// credentials in its address.
func shallow(t *testing.T, dir, address string) string {
	t.Helper()
	full, clone := filepath.Join(dir, "full"), filepath.Join(dir, "clone")
	for i := range 3 {
		config := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a}\ndata: {a: b%d}\n", i)
		kustomization := "resources: [config.yaml]\nreplacements: [{source: {kind: ConfigMap, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, fieldPaths: [metadata.labels.a], options: {create: true}}]}]\n"
		for name, text := range map[string]string{"config.yaml": config, "kustomization.yaml": kustomization, "ks.yaml": kustomizationFile} {
			if err := errors.Join(os.MkdirAll(filepath.Join(full, "cluster"), 0o755), os.WriteFile(filepath.Join(full, "cluster", name), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			runGit(t, full, "init", "-q", "-b", "main")
		}
		runGit(t, full, "add", "-A")
		runGit(t, full, "commit", "-qm", fmt.Sprint("change ", i))
	}
	runGit(t, dir, "clone", "-q", "--depth=1", "file://"+full, clone)
	runGit(t, clone, "remote", "set-url", "origin", strings.Replace(address, "http://", "http://me:cnry-url-password@", 1)+"/x")
	return clone
}

const kustomizationFile = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec: {path: ./}\n"

// TestCanaryChildren runs the commands that start other programs: arguments never have a credential,
// environments only those that the user's own programs need, and none of it is printed or written.
func TestCanaryChildren(t *testing.T) {
	t.Parallel()
	c := newChildren(t)
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(c.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(echo(http.StatusForbidden))
	t.Cleanup(server.Close)
	repository := t.TempDir()
	kubeconfig := filepath.Join(repository, "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, canaryKubeconfig, server.URL, "token: cnry-kube-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	clone := shallow(t, repository, server.URL)
	chart := filepath.Join(repository, "chart")
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ env \"GITHUB_TOKEN\" | quote }}}\n",
		"hr.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app, namespace: apps}\nspec: {interval: 1m, chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: app}}}}\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(chart, "templates"), 0o755), os.WriteFile(filepath.Join(chart, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	secure := httptest.NewTLSServer(echo(http.StatusForbidden))
	t.Cleanup(secure.Close)
	authority := filepath.Join(repository, "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(t, clone, "", nil, "build", "kustomization", "app", "--dry-run", "--kustomization-file", "cluster/ks.yaml", "--path", "cluster")
	c.run(t, clone, "", nil, "build", "helmrelease", "app", "-n", "apps", "--dry-run", "--helmrelease-file", filepath.Join(chart, "hr.yaml"), "--chart", chart)
	c.run(t, clone, "", nil, "diff", "--base", "HEAD@{1 day ago}", "--path", "cluster")
	if out := c.run(t, clone, "", nil, "diff", "--base", "1111111111111111111111111111111111111111", "--path", "cluster", "--fetch"); !strings.Contains(out, "403") {
		t.Errorf("git does not fetch: %s", out)
	}
	hosted := []string{"--owner=o", "--repository=r", "--hostname", strings.TrimPrefix(secure.URL, "https://"), "--ca-file", authority, "--token-auth", "--path=x"}
	unset := []string{"GITHUB_TOKEN=", "GITLAB_TOKEN=", "GITEA_TOKEN=", "KUBECONFIG=" + kubeconfig}
	c.run(t, clone, "", unset, append([]string{"bootstrap", "github", "--token-from=gh"}, hosted...)...)
	for _, kind := range []string{"github", "gitlab", "gitea"} {
		if out := c.run(t, clone, "cnry-stdin-token\n", unset, append([]string{"bootstrap", kind}, hosted...)...); !strings.Contains(out, "*****") {
			t.Errorf("bootstrap %s does not use the token of standard input: %s", kind, out)
		}
	}
	c.run(t, clone, "", []string{"KUBECONFIG=" + kubeconfig}, "--context=c", "hello")
	privateFiles(t, filepath.Join(c.dir, "home")) // the kubeconfig of the plugin

	for _, record := range slices.Concat(c.started(t, helper.Program), c.started(t, "git"), c.started(t, "gh"), c.started(t, "flux-hello")) {
		arguments, environment, _ := strings.Cut(record, "\n")
		if strings.Contains(arguments, "cnry") || strings.Contains(arguments, "CNRY") {
			t.Errorf("a credential is an argument: %s", arguments)
		}
		if traces := regexp.MustCompile(`GIT_(TRACE|CURL)\w*`).FindString(environment); traces != "" && (strings.HasPrefix(record, "git ") || strings.HasPrefix(record, helper.Program)) {
			t.Errorf("%s has %s in its environment", arguments, traces)
		}
		// Credential helpers of the user's Git, the user's gh, and plugins need the environment.
		own := strings.HasPrefix(record, "gh ") || strings.HasPrefix(record, "flux-hello ") || strings.HasPrefix(record, "git ") && slices.Contains(strings.Fields(arguments), "fetch")
		if !own && strings.Contains(strings.ToLower(environment), "cnry") {
			t.Errorf("%s has a credential in its environment:\n%s", arguments, environment)
		}
	}
	for _, folder := range []string{filepath.Join(c.dir, "home"), filepath.Join(c.dir, "tmp")} {
		withoutCanary(t, folder)
	}
	if left, err := os.ReadDir(filepath.Join(c.dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// privateFiles fails for files that others can read, and if there is none.
func privateFiles(t *testing.T, folder string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files: %v", files, err)
	}
}
