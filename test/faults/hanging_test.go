package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testterminal"
	"github.com/fluxkit/flux/test/support/tier"
)

// hangingRow is a command on a Kustomization app in which each request hangs once.
type hangingRow struct {
	args string
	// answered means that a controller handles the requests for a reconciliation.
	answered bool
	// lasts means that the command runs until it is interrupted.
	lasts bool
}

var hangingRows = map[string]hangingRow{
	"get":            {args: "get ks"},
	"get all":        {args: "get all"},
	"get --watch":    {args: "get ks --watch", lasts: true},
	"events --watch": {args: "events --watch", lasts: true},
	"logs --follow":  {args: "logs --follow --flux-namespace NAMESPACE", lasts: true},
	"logs":           {args: "logs --flux-namespace NAMESPACE"},
	"export":         {args: "export ks app"},
	"tree":           {args: "tree ks app"},
	"trace":          {args: "trace ks app"},
	"deps":           {args: "deps"},
	"status":         {args: "status ks app"},
	"why":            {args: "why ks app"},
	"stats":          {args: "stats"},
	"wait":           {args: "wait ks app"},
	"suspend":        {args: "suspend ks app"},
	"resume":         {args: "resume ks app", answered: true},
	"reconcile":      {args: "reconcile ks app", answered: true},
	"create":         {args: "create secret git app --url=https://example.com/r --username=u --password=p"},
	"delete":         {args: "delete ks app --silent"},
	"diff":           {args: "diff ks app --path DIR"},
	"build":          {args: "build ks app --path DIR"},
}

// hanging makes every request of every command hang: SIGTERM ends the command, and --timeout ends it with a message, or
// a report that lists the objects that could not be read.
func (w *world) hanging(t *testing.T) {
	for name, row := range hangingRows {
		ids := w.requestsOf(t, row, "hanging-"+strings.NewReplacer(" ", "-", "--", "").Replace(name))
		if len(ids) == 0 {
			t.Errorf("%s sends no request", name)
		}
		if !tier.Nightly() {
			ids = ids[len(ids)-1:]
		}
		for i, id := range ids {
			namespace := fmt.Sprintf("hanging-%s-%d", strings.NewReplacer(" ", "-", "--", "").Replace(name), i)
			t.Run(name+", "+id+", SIGTERM", func(t *testing.T) {
				t.Parallel()
				p, reached := w.hang(t, row, namespace+"-s", id)
				p.reaches(reached)
				p.stops(syscall.SIGTERM)
			})
			if row.lasts && lasting(id) {
				continue // not limited by --timeout
			}
			t.Run(name+", "+id+", --timeout", func(t *testing.T) {
				t.Parallel()
				p, _ := w.hang(t, row, namespace+"-t", id, "--timeout=2s")
				select {
				case <-p.ended:
				case <-time.After(testlimit.Wait):
					p.fatalf("does not exit")
				}
				if code := p.cmd.ProcessState.ExitCode(); code != 1 && code != 2 || !strings.Contains(p.stderr.String()+p.stdout.String(), "timed out") {
					p.fatalf("exit code %d", code)
				}
			})
		}
	}
}

// start runs the row in a separate namespace.
func (r hangingRow) start(t *testing.T, w *world, namespace, kubeconfig string, flags ...string) *process {
	t.Helper()
	w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	w.kustomizations(t, namespace, "app")
	w.seed(t, namespace, controllerManifest)
	if r.answered {
		w.answer(t, namespace, "app")
	}
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "cm.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, namespace: "+namespace+"}\n"), 0o600))
	args := strings.Fields(strings.NewReplacer("DIR", dir, "NAMESPACE", namespace).Replace(r.args))
	return w.start(t, kubeconfig, slices.Concat(args, []string{"-n", namespace}, flags)...)
}

// controllerManifest is a controller whose pod has the status running.
const controllerManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, labels: {app.kubernetes.io/part-of: flux, app: kustomize-controller}}
spec:
  replicas: 0
  selector: {matchLabels: {app: kustomize-controller}}
  template:
    metadata: {labels: {app: kustomize-controller}}
    spec: {containers: [{name: manager, image: kustomize-controller}]}
---
apiVersion: v1
kind: Pod
metadata: {name: kustomize-controller-0, labels: {app: kustomize-controller}}
spec: {containers: [{name: manager, image: kustomize-controller}], nodeName: none}
status:
  phase: Running
  containerStatuses: [{name: manager, image: kustomize-controller, imageID: x, ready: true, restartCount: 0, state: {running: {}}}]
`

// requestsOf returns the requests of an undisturbed run, without repeated ones.
func (w *world) requestsOf(t *testing.T, row hangingRow, namespace string) []string {
	t.Helper()
	proxy := w.proxy(t)
	var mu sync.Mutex
	var ids []string
	quiet := make(chan struct{}, 1000)
	proxy.Misbehave(func(_ http.ResponseWriter, r *http.Request) bool {
		id := requestID(r, namespace)
		mu.Lock()
		if !slices.Contains(ids, id) && !spare(r) {
			ids = append(ids, id)
			quiet <- struct{}{}
		}
		mu.Unlock()
		if row.lasts && strings.HasSuffix(id, "/log") { // the pod has no node, and the server would reject it
			<-r.Context().Done()
			return true
		}
		return false
	})
	p := row.start(t, w, namespace, proxy.Kubeconfig, "--timeout=20s")
	if row.lasts { // the last request is the one that lasts
		for reached := false; !reached; {
			select {
			case <-quiet:
			case <-p.ended:
				p.fatalf("exited")
			case <-time.After(testlimit.Wait):
				p.fatalf("sends no watch")
			}
			mu.Lock()
			reached = lasting(ids[len(ids)-1])
			mu.Unlock()
		}
		p.interrupt()
	}
	select {
	case <-p.ended:
	case <-time.After(testlimit.Wait):
		p.fatalf("does not exit")
	}
	mu.Lock()
	defer mu.Unlock()
	return ids
}

// spare reports whether a request is for the older of two versions of a kind that are read in parallel. The command
// cancels it when the server responds to the request for the newer version, which it serves here.
func spare(r *http.Request) bool {
	return slices.ContainsFunc(controllers.Kinds, func(k controllers.Kind) bool {
		return k.Portable != "" && strings.HasPrefix(r.URL.Path, "/apis/"+k.Group+"/"+k.Portable+"/") && strings.Contains(r.URL.Path+"/", "/"+k.Resource+"/")
	})
}

// lasting reports whether a request lasts until the command ends. The stream of a log has no
// response before the first line.
func lasting(id string) bool { return strings.HasPrefix(id, "watch") || strings.HasSuffix(id, "/log") }

// requestID identifies a request without its namespace.
func requestID(r *http.Request, namespace string) string {
	return sort(r) + " " + strings.ReplaceAll(r.URL.Path, namespace, "NAMESPACE")
}

// hang starts a command of which one request never gets a response.
func (w *world) hang(t *testing.T, row hangingRow, namespace, id string, flags ...string) (p *process, reached <-chan struct{}) {
	t.Helper()
	proxy := w.proxy(t)
	asked := make(chan struct{})
	var once sync.Once
	proxy.Misbehave(func(_ http.ResponseWriter, r *http.Request) bool {
		if requestID(r, namespace) != id {
			return false
		}
		once.Do(func() { close(asked) })
		<-r.Context().Done()
		return true
	})
	return row.start(t, w, namespace, proxy.Kubeconfig, flags...), asked
}

// reaches waits until the request that hangs has arrived.
func (p *process) reaches(reached <-chan struct{}) {
	p.t.Helper()
	select {
	case <-reached:
	case <-p.ended:
		p.fatalf("exited before the request that hangs: %v", p.err)
	case <-time.After(testlimit.Wait):
		p.fatalf("does not send the request that hangs")
	}
}

// prompting sends SIGTERM to commands that prompt on a terminal: they end, and the terminal echoes again.
func (w *world) prompting(t *testing.T) {
	const namespace = "prompting"
	w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	w.kustomizations(t, namespace, "app")
	for name, args := range map[string][]string{
		"confirmation": {"delete", "ks", "app", "-n", namespace},
		"uninstall":    {"uninstall", "-n", "flux-system"},
		"password":     {"bootstrap", "git", "--url=https://127.0.0.1:1/r.git", "--username=u", "--token-auth", "--path=p"},
		"token":        {"bootstrap", "github", "--owner=o", "--repository=r", "--path=p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(w.bin, "flux"), args...)
			cmd.Env = []string{"KUBECONFIG=" + w.cluster.Kubeconfig, "HOME=" + t.TempDir(), "TERM=xterm"}
			terminal, err := testterminal.Start(cmd, 100, 20)
			check(t, err)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = terminal.Wait() // the exit code is in ProcessState
			}()
			prompted(t, terminal, ended)
			check(t, cmd.Process.Signal(syscall.SIGTERM))
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != 130 || ctx.Err() != nil {
				t.Errorf("exit code %d\n%s", code, terminal.Raw())
			}
		})
	}
}

// prompted waits until the last line on the screen is a question.
func prompted(t *testing.T, terminal *testterminal.Terminal, ended <-chan struct{}) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.After(testlimit.Wait)
	for {
		screen, _ := terminal.Shows()
		lines := strings.Split(strings.TrimSpace(screen), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); strings.HasSuffix(last, ":") || strings.HasSuffix(last, "?") || strings.HasSuffix(last, "]") {
			return
		}
		select {
		case <-look.C:
		case <-ended:
			t.Fatalf("exited without a prompt:\n%s", terminal.Raw())
		case <-late:
			t.Fatalf("does not prompt:\n%s", terminal.Raw())
		}
	}
}
