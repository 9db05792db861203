package faults_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/tier"
)

// matrixRow is a command that is killed at each of its requests and at each line
// of its output.
type matrixRow struct {
	// args lists the arguments in addition to the namespace and the components.
	args func(t *testing.T, w *world, v *killedRun) []string
	// git means that the command pushes to its own repository.
	git bool
}

// matrix lists the commands. They install few components and no network policies, to
// keep a run short.
var matrix = map[string]matrixRow{
	"install": {args: func(*testing.T, *world, *killedRun) []string { return []string{"install"} }},
	"git-https": {git: true, args: func(t *testing.T, w *world, v *killedRun) []string {
		var ca string
		v.gitURL, ca = v.killer.tlsProxy(t, w.cluster.Env["FLUX_SANDBOX_GIT_URL"])
		return []string{"bootstrap", "git", "--url=" + v.gitURL + "/" + v.namespace + ".git", "--ca-file=" + ca, "--username=dev", "--password=any",
			"--token-auth", "--silent", "--path=clusters/demo"}
	}},
	"git-ssh": {git: true, args: func(t *testing.T, w *world, v *killedRun) []string {
		v.gitURL = v.killer.ssh(t, filepath.Join(w.cluster.Dir, "git"))
		return []string{"bootstrap", "git", "--url=" + v.gitURL + "/" + v.namespace + ".git", "--silent", "--path=clusters/demo", "--private-key-file=" + privateKey(t)}
	}},
}

// privateKey writes an SSH key, which the servers accept without credentials configured.
func privateKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	check(t, err)
	file := filepath.Join(t.TempDir(), "id_ed25519")
	check(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return file
}

// killedRun is a command in a separate namespace.
type killedRun struct {
	t         *testing.T
	w         *world
	row       matrixRow
	namespace string
	gitURL    string
	killer    *killer
	env, args []string
}

func (w *world) newKilledRun(t *testing.T, row matrixRow, namespace string) *killedRun {
	t.Helper()
	v := &killedRun{t: t, w: w, row: row, namespace: namespace, killer: &killer{}}
	if row.git {
		w.cluster.Sandbox(t, "git", "create", namespace)
	}
	v.env = environment(t, v.killer.kubeconfigOf(t, w.cluster, func(*http.Request) bool { return true }))
	v.args = append(row.args(t, w, v), "--namespace="+namespace, "--components=source-controller,kustomize-controller", "--network-policy=false")
	return v
}

// countKills reports the number of killed processes at the end of the test. With all faults, it
// has to be at least a minimum.
func (w *world) countKills(t *testing.T, least int64) {
	t.Cleanup(func() {
		if n := w.kills.Load(); n == 0 || tier.Nightly() && n < least {
			t.Errorf("only %d processes were killed", n)
		} else {
			t.Logf("%d processes were killed, and the state after a second run was that of an uninterrupted one", n)
		}
	})
}

// lineKiller kills a process after a number of output lines.
type lineKiller struct {
	mu    sync.Mutex
	text  strings.Builder
	lines int
	at    int
	kill  func()
}

func (l *lineKiller) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	before := l.lines
	l.lines += strings.Count(string(p), "\n")
	if before < l.at && l.lines >= l.at {
		l.kill()
	}
	return len(p), nil
}

// run runs the command and kills it at a request or a line, 0 for none. It returns
// the output, and whether the command was killed.
func (v *killedRun) run(request int, late bool, line int) (out *lineKiller, killed bool, err error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), testlimit.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(v.w.bin, "flux"), v.args...)
	out = &lineKiller{at: line}
	out.kill = func() { _ = cmd.Process.Kill() } // fails if it has exited
	cmd.Env, cmd.Stdout, cmd.Stderr = v.env, out, out
	ended := make(chan struct{})
	v.killer.mu.Lock()
	v.killer.seen, v.killer.at, v.killer.late = nil, request, late
	v.killer.kill = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	v.killer.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return out, false, err
	}
	err = cmd.Wait()
	close(ended)
	var exit *exec.ExitError
	return out, errors.As(err, &exit) && exit.ExitCode() == -1, err
}

// state returns the result of the command: all objects and files.
func (v *killedRun) state() string {
	v.t.Helper()
	var all []string
	for _, kind := range [][2]string{
		{"v1", "Namespace"}, {"v1", "Service"}, {"v1", "ServiceAccount"}, {"v1", "ResourceQuota"}, {"v1", "Secret"}, {"v1", "ConfigMap"}, {"apps/v1", "Deployment"},
		{"rbac.authorization.k8s.io/v1", "ClusterRole"}, {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
		{"networking.k8s.io/v1", "NetworkPolicy"}, {"source.toolkit.fluxcd.io/v1", "GitRepository"}, {"kustomize.toolkit.fluxcd.io/v1", "Kustomization"},
	} {
		r := resource(kind[0], kind[1])
		scope := v.namespace
		if r.ClusterScoped {
			scope = ""
		}
		_, err := v.w.cluster.Client.List(v.t.Context(), r, kube.Selection{Namespace: scope}, func(o controllers.Object) error {
			if !r.ClusterScoped || strings.HasSuffix(controllers.Name(o), v.namespace) {
				all = append(all, describe(v.t, kind[1], o)+secretData(o))
			}
			return nil
		})
		if !kube.NotServed(err) {
			check(v.t, err)
		}
	}
	slices.Sort(all)
	text := strings.Join(all, "")
	if v.row.git {
		text += v.repository()
	}
	text = strings.ReplaceAll(text, v.namespace, "NAMESPACE")
	if v.gitURL != "" {
		text = strings.ReplaceAll(text, v.gitURL, "GIT")
	}
	return text
}

// secretData returns the data of a Secret without generated values.
func secretData(o controllers.Object) string {
	data, _ := o["data"].(map[string]any)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if strings.HasPrefix(key, "identity") || key == "known_hosts" {
			data[key] = "generated"
		}
		fmt.Fprintf(&text, "  %s: %v\n", key, data[key])
	}
	return text.String()
}

// repository returns the history and all files of the repository.
func (v *killedRun) repository() string {
	folder := "--git-dir=" + filepath.Join(v.w.cluster.Dir, "git", v.namespace+".git")
	var text strings.Builder
	for _, args := range [][]string{{folder, "log", "--format=%s", "main"}, {folder, "ls-tree", "-r", "--name-only", "main"}} {
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			v.t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		text.Write(out)
		if args[1] != "ls-tree" {
			continue
		}
		for _, name := range strings.Fields(string(out)) {
			content, err := exec.Command("git", folder, "show", "main:"+name).CombinedOutput()
			check(v.t, err)
			fmt.Fprintf(&text, "--- %s\n%s", name, content)
		}
	}
	return text.String()
}

// TestKillMatrix kills commands at every request, before and after the server has
// handled it, and at every line of output. A second run must reach the state of an
// uninterrupted one.
func TestKillMatrix(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t), cluster: sandboxes.Acquire(t, testcluster.Whole)}
	check(t, w.cluster.InstallCRDs(t.Context()))
	w.playControllers(t)
	w.countKills(t, 200)
	for name, row := range matrix {
		undisturbed := w.newKilledRun(t, row, name+"-whole")
		out, _, err := undisturbed.run(0, false, 0)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out.text.String())
		}
		want, requests, lines := undisturbed.state(), len(undisturbed.killer.counted()), out.lines
		if requests < 10 || lines < 5 {
			t.Fatalf("%s: only %d requests and %d lines", name, requests, lines)
		}
		step := 1
		if !tier.Nightly() {
			step = 24
		}
		t.Logf("%s: %d requests, %d lines", name, requests, lines)
		if row.git && !slices.ContainsFunc(undisturbed.killer.counted(), func(request string) bool { return strings.Contains(request, "git-receive-pack") }) {
			t.Fatalf("%s: the push is not counted", name)
		}
		for at := 1; at <= requests; at += step {
			for _, late := range []bool{false, true} {
				id := fmt.Sprintf("%s-r%03d-%t", name, at, late)
				t.Run(id, func(t *testing.T) {
					t.Parallel()
					w.newKilledRun(t, row, id).survives(at, late, 0, want)
				})
			}
		}
		for at := 1; at <= lines; at += step {
			id := fmt.Sprintf("%s-l%03d", name, at)
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				w.newKilledRun(t, row, id).survives(0, false, at, want)
			})
		}
	}
}

func (v *killedRun) survives(request int, late bool, line int, want string) {
	v.t.Helper()
	out, killed, err := v.run(request, late, line)
	// The number of watches and the last line vary: a run that has exited before the
	// kill must have succeeded, and its state is compared as well.
	if !killed && err != nil {
		v.t.Fatalf("the command failed before it was killed: %v\n%s", err, out.text.String())
	}
	where := out.text.String()
	if request > 0 && request <= len(v.killer.counted()) {
		where = v.killer.counted()[request-1]
	}
	if v.t.Logf("killed: %t", killed); killed {
		v.w.kills.Add(1)
	}
	if out, _, err := v.run(0, false, 0); err != nil {
		v.t.Fatalf("after a kill at %s: %v\n%s", where, err, out.text.String())
	}
	if diff := cmp.Diff(want, v.state()); diff != "" {
		v.t.Errorf("after a kill at %s: %s", where, diff)
	}
}
