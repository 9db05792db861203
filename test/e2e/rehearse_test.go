package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/sops/sopstest"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// rehearsed is a report of flux rehearse in JSON.
type rehearsed struct {
	From, To, Result string
	Findings         []struct {
		Level, Rule, Message, File string
		Object                     struct{ Kind, Namespace, Name string }
		Remedies                   []string
	}
	Controllers []struct {
		Name, Unknown string
		Exact         bool
	}
	NotRehearsed []struct {
		Object   struct{ Kind, Name string }
		Reason   string
		Intended bool
	}
	Changes []struct {
		NotCompared *struct{ Reason string }
		Changes     []struct {
			Action string
			Object struct{ Kind, Name string }
			Fields []struct{ Path, Op string }
		}
	}
}

// has reports whether there is a finding about an object whose message contains a text.
func (r rehearsed) has(level, rule, kind, text string) bool {
	for _, f := range r.Findings {
		if f.Level == level && f.Rule == rule && f.Object.Kind == kind && strings.Contains(f.Message, text) {
			return true
		}
	}
	return false
}

// fleet is the repository of a cluster that was bootstrapped with Flux 2.9.
var fleet = map[string]string{
	"clusters/demo/flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 1m0s
  ref: {branch: main}
  secretRef: {name: flux-system}
  url: ssh://git@git.example.com/acme/fleet
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./clusters/demo
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
	"clusters/demo/flux-system/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [gotk-components.yaml, gotk-sync.yaml]
`,
	// The application comes from the same repository under another form of its address.
	"clusters/demo/my-app.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 1m0s
  ref: {branch: main}
  url: https://git.example.com/acme/fleet.git
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: my-app, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./apps/my-app
  prune: true
  wait: true
  dependsOn: [{name: settings}]
  sourceRef: {kind: GitRepository, name: apps}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: settings, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./apps/settings
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
	"apps/settings/settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {color: blue}
`,
	"apps/my-app/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: my-app, namespace: default}
spec:
  selector: {matchLabels: {app: my-app}}
  template:
    metadata: {labels: {app: my-app}}
    spec:
      containers: [{name: app, image: "ghcr.io/stefanprodan/podinfo:6.9.0"}]
`,
}

// notifications are an Alert in an API version that Flux 2.10 deprecates, with a field that its
// successor does not have. A notification would be sent to a port that is closed.
const notifications = `apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: chat, namespace: flux-system}
spec: {type: generic, address: "http://127.0.0.1:1/hook"}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: on-call, namespace: flux-system}
spec:
  summary: the demo cluster
  providerRef: {name: chat}
  eventSources: [{kind: Kustomization, name: "*"}]
`

const postRendered = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 10m0s
  targetNamespace: default
  releaseName: web
  chart:
    spec:
      chart: ./charts/web
      version: '*'
      reconcileStrategy: ChartVersion
      sourceRef: {kind: GitRepository, name: flux-system}
  postRenderers:
    - kustomize:
        patches:
          - target: {kind: ConfigMap}
            patch: |
              [{"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}]
`

// clone writes the repository into a Git work tree.
func writeFleet(sh *shell, more map[string]string) string {
	sh.t.Helper()
	dir := sh.t.TempDir()
	files := map[string]string{"clusters/demo/flux-system/gotk-components.yaml": sh.run("flux", "install", "--version=2.9", "--export")}
	for _, set := range []map[string]string{fleet, more} {
		for name, content := range set {
			files[name] = content
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			sh.t.Fatal(err)
		}
	}
	if _, stderr, err := sh.in(dir).try("git", "init", "--quiet"); err != nil {
		sh.t.Fatal(stderr)
	}
	return dir
}

// rehearse runs flux rehearse and checks the exit code.
func rehearse(sh *shell, dir string, code int, args ...string) rehearsed {
	sh.t.Helper()
	stdout, stderr, err := sh.in(dir).try("flux", append([]string{"rehearse", "-o", "json"}, args...)...)
	var exited *exec.ExitError
	if got := 0; errors.As(err, &exited) {
		if got = exited.ExitCode(); got != code {
			sh.t.Fatalf("exit code %d, want %d\n%s%s", got, code, stdout, stderr)
		}
	} else if err != nil || code != 0 {
		sh.t.Fatalf("%v, want exit code %d\n%s%s", err, code, stdout, stderr)
	}
	var r rehearsed
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		sh.t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	return r
}

// checkRemoved checks that no sandbox is left in the temporary folder.
func checkRemoved(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v (%v)", left, err)
	}
}

func TestRehearse(t *testing.T) {
	t.Parallel()
	runRehearsals(t, map[string]func(sh *shell){"upgrade": rehearseUpgrade})
}

func TestNightlyRehearse(t *testing.T) {
	t.Parallel()
	runRehearsals(t, map[string]func(sh *shell){
		"same": rehearseSame, "broken": rehearseBroken, "encrypted": rehearseEncrypted, "unreachable": rehearseUnreachable,
		"interrupt-start": interruptStart, "interrupt-reconciling": interruptReconciling, "cluster": rehearseCluster,
	})
}

// runRehearsals runs subtests one after the other, and checks that no sandbox is left after each.
func runRehearsals(t *testing.T, rehearsals map[string]func(sh *shell)) {
	t.Helper()
	tmp := testtemp.Short(t)
	sh := newUser(t).with("TMPDIR=" + tmp)
	for name, rehearsal := range rehearsals {
		t.Run(name, func(t *testing.T) {
			rehearsal(sh.as(t))
			checkRemoved(t, tmp)
		})
	}
}

// rehearseSame is the near miss of the upgrade: the same chart and post-renderer, and notifications in
// the API version of Flux 2.9 that it still has.
func rehearseSame(sh *shell) {
	dir := writeFleet(sh, map[string]string{"clusters/demo/web.yaml": postRendered, "charts/web/Chart.yaml": webChart, "charts/web/templates/web.yaml": webTemplate})
	r := rehearse(sh, dir, 0, "--to=2.10")
	if r.From != "2.9.6" || r.Result != "same" || len(r.Findings) > 0 || len(r.Changes) > 0 {
		sh.t.Errorf("got %+v", r)
	}
	exact := 0
	for _, c := range r.Controllers {
		if c.Exact {
			exact++
		}
		if c.Exact && c.Unknown != "" {
			sh.t.Errorf("controller %+v", c)
		}
	}
	text, _, err := sh.in(dir).try("flux", "rehearse", "--path=clusters/demo")
	if want := "Nothing differs between Flux 2.9.6 and 2.10.0"; err != nil || !strings.Contains(text, want) ||
		exact < len(r.Controllers) && !strings.Contains(text, "did not run in the version of Flux 2.10.0: what only these versions change is not known.") {
		sh.t.Errorf("%v, want %q:\n%s", err, want, text)
	}
}

const webChart = "apiVersion: v2\nname: web\nversion: 1.0.0\n"

const webTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: hello}\n"

func rehearseUpgrade(sh *shell) {
	dir := writeFleet(sh, map[string]string{
		"clusters/demo/web.yaml": postRendered, "charts/web/Chart.yaml": webChart, "charts/web/templates/web.yaml": webTemplate,
		"clusters/demo/notifications.yaml": notifications,
	})
	r := rehearse(sh, dir, 1, "--to=2.10")
	if !r.has("breaks", "field-removed", "Alert", "spec.summary does not exist in notification.toolkit.fluxcd.io/v1") {
		sh.t.Errorf("no removed field: %+v", r.Findings)
	}
	for _, kind := range []string{"Alert", "Provider"} {
		if !r.has("migrate", "deprecated", kind, "v1beta3 "+kind+" is deprecated, upgrade to v1") {
			sh.t.Errorf("no deprecation of %s: %+v", kind, r.Findings)
		}
	}
	if want := 3; len(r.Findings) != want {
		sh.t.Errorf("%d findings, want %d: %+v", len(r.Findings), want, r.Findings)
	}
	for _, f := range r.Findings {
		// Flux 2.9 does not serve the API version to which the files are migrated.
		remedies := []string{"migrate the files with or after the upgrade, because Flux 2.9.6 does not serve v1: flux migrate -f . --version 2.10"}
		if f.Rule == "field-removed" {
			remedies = append([]string{"move spec.summary to spec.eventMetadata.summary"}, remedies...)
		}
		if f.File != "clusters/demo/notifications.yaml" || !slices.Equal(f.Remedies, remedies) {
			sh.t.Errorf("finding %+v", f)
		}
	}
	// The API server of the next version has dropped the value; nothing else has changed.
	if len(r.Changes) != 1 || len(r.Changes[0].Changes) != 1 || r.Changes[0].Changes[0].Object.Kind != "Alert" ||
		r.Changes[0].Changes[0].Fields[0].Path != "spec.summary" {
		sh.t.Errorf("changes %+v", r.Changes)
	}
	if len(r.NotRehearsed) != 1 || r.NotRehearsed[0].Object.Kind != "Alert" || !r.NotRehearsed[0].Intended {
		sh.t.Errorf("not rehearsed: %+v", r.NotRehearsed)
	}
	for _, c := range r.Controllers {
		if c.Name == "helm-controller" && !c.Exact && !strings.Contains(c.Unknown, "HelmRelease/flux-system/web (post-renderers)") {
			sh.t.Errorf("controller %+v", c)
		}
	}
}

// rehearseBroken goes back to a version that does not serve the API version of the manifests, so that
// their Kustomization fails.
func rehearseBroken(sh *shell) {
	current := strings.ReplaceAll(strings.ReplaceAll(notifications, "v1beta3", "v1"), "  summary: the demo cluster\n", "")
	r := rehearse(sh, writeFleet(sh, map[string]string{"clusters/demo/notifications.yaml": current}), 1, "--from=2.10", "--to=2.9.6")
	for _, kind := range []string{"Alert", "Provider"} {
		if !r.has("breaks", "not-served", kind, "notification.toolkit.fluxcd.io/v1 is not served by Flux 2.9.6") {
			sh.t.Errorf("%s is served: %+v", kind, r.Findings)
		}
	}
	if !r.has("breaks", "not-ready", "Kustomization", "notification.toolkit.fluxcd.io/v1") {
		sh.t.Errorf("no root cause: %+v", r.Findings)
	}
	blocked := 0
	for _, result := range r.Changes {
		for _, c := range result.Changes {
			sh.t.Errorf("%s of %s/%s, which is not applied", c.Action, c.Object.Kind, c.Object.Name)
		}
		if result.NotCompared != nil && strings.Contains(result.NotCompared.Reason, "because Kustomization/flux-system/flux-system is not ready") {
			blocked++
		}
	}
	if want := 3; blocked != want {
		sh.t.Errorf("%d owners are blocked, want %d: %+v", blocked, want, r.Changes)
	}
}

// rehearseEncrypted rehearses a Secret that SOPS has encrypted, with the key and with stub values, which
// have to be equal with both versions. The near miss is a rehearsal without either.
func rehearseEncrypted(sh *shell) {
	keys, err := sopstest.New()
	if err != nil {
		sh.t.Fatal(err)
	}
	dir := writeFleet(sh, map[string]string{
		"clusters/demo/token.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: token, namespace: flux-system}
spec:
  interval: 10m0s
  path: ./apps/token
  prune: true
  targetNamespace: default
  decryption: {provider: sops, secretRef: {name: sops-age}}
  postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}]}
  sourceRef: {kind: GitRepository, name: flux-system}
`,
		"clusters/demo/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata: {color: blue}\n",
		"apps/token/token.yaml":       sealedToken(sh.t, keys),
	})
	if r := rehearse(sh, dir, 2); len(r.NotRehearsed) != 1 || r.NotRehearsed[0].Object.Name != "token" {
		sh.t.Errorf("without keys: %+v", r)
	}
	for _, args := range [][]string{{"--age-key-file", tempFile(sh.t, "age.agekey", keys.Identity.String()+"\n")}, {"--fake-secrets"}} {
		if r := rehearse(sh, dir, 0, args...); r.Result != "same" || len(r.NotRehearsed)+len(r.Changes) > 0 {
			sh.t.Errorf("%v: %+v", args, r)
		}
	}
}

func rehearseUnreachable(sh *shell) {
	r := rehearse(sh, writeFleet(sh, map[string]string{"clusters/demo/charts.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 10m0s, url: "http://127.0.0.1:1/charts"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: released, namespace: flux-system}
spec: {interval: 10m0s, url: "https://git.example.com/acme/fleet", ref: {tag: v1.0.0}}
`}), 2)
	if r.Result != "undetermined" || len(r.NotRehearsed) != 2 || r.NotRehearsed[1].Object.Name != "charts" || r.NotRehearsed[1].Intended ||
		!strings.Contains(r.NotRehearsed[1].Reason, "connection refused") {
		sh.t.Errorf("got %+v", r)
	}
	// A source of the repository at another revision is not the working tree.
	if got := r.NotRehearsed[0]; got.Object.Name != "released" || !strings.Contains(got.Reason, "git.example.com") {
		sh.t.Errorf("got %+v", got)
	}
}

// interruptStart ends a rehearsal while the sandboxes start.
func interruptStart(sh *shell) {
	interrupted := startRehearsal(sh, "starting a sandbox")
	if err := interrupted.Process.Signal(os.Interrupt); err != nil {
		sh.t.Fatal(err)
	}
	checkInterrupted(sh.t, interrupted)
}

// interruptReconciling ends a rehearsal while the controllers work. Only a second interrupt ends the process at
// once, further terminations do not.
func interruptReconciling(sh *shell) {
	terminated := startRehearsal(sh, "reconciling")
	ended, end := context.WithCancel(sh.t.Context())
	var sender sync.WaitGroup
	sender.Go(func() {
		for ended.Err() == nil {
			_ = terminated.Process.Signal(syscall.SIGTERM) // fails once the process has ended
			select {
			case <-ended.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	checkInterrupted(sh.t, terminated)
	end()
	sender.Wait()
}

// startRehearsal starts a rehearsal, and returns when it has written a text to standard error.
func startRehearsal(sh *shell, text string) *exec.Cmd {
	sh.t.Helper()
	cmd := sh.in(writeFleet(sh, nil)).command(sh.t.Context(), "flux", "rehearse", "--to=2.10")
	log := &awaited{text: text, seen: make(chan struct{})}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		sh.t.Fatal(err)
	}
	select {
	case <-log.seen:
	case <-deadline(sh.t):
		sh.t.Fatalf("%q was not reached", text)
	}
	return cmd
}

// checkInterrupted waits until a command has ended because of a signal.
func checkInterrupted(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	const interrupted = 130
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != interrupted {
		t.Errorf("%q ends with %v", cmd.Args, err)
	}
}

// awaited closes seen when a text was written.
type awaited struct {
	text string
	all  []byte
	seen chan struct{}
}

// Write implements io.Writer.
func (w *awaited) Write(p []byte) (int, error) {
	before := strings.Contains(string(w.all), w.text)
	w.all = append(w.all, p...)
	if !before && strings.Contains(string(w.all), w.text) {
		close(w.seen)
	}
	return len(p), nil
}

// rehearseCluster rehearses the objects of a cluster, whose Secrets are not read.
func rehearseCluster(sh *shell) {
	cluster := testcluster.Start(sh.t, "none")
	sh.env = append(slices.Clone(sh.env), "KUBECONFIG="+cluster.Kubeconfig)
	if err := cluster.Upgrade(sh.t.Context(), "2.9"); err != nil { // which stores the fields that 2.10 does not have
		sh.t.Fatal(err)
	}
	seed := `apiVersion: v1
kind: Namespace
metadata: {name: apps}
---
apiVersion: v1
kind: Secret
metadata: {name: hook, namespace: flux-system}
stringData: {address: "http://127.0.0.1:1/SECRET-VALUE"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: apps}
spec: {interval: 1m0s, url: "https://127.0.0.1:1/acme/fleet"}
---
` + strings.ReplaceAll(notifications, "type: generic,", "type: generic, secretRef: {name: hook},")
	seed = "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n---\n" + seed
	if err := cluster.Seed(sh.t.Context(), []byte(seed), ""); err != nil {
		sh.t.Fatal(err)
	}
	r := rehearse(sh, sh.t.TempDir(), 1, "--from-cluster", "--from=2.9", "--to=2.10", "--timeout="+(2*time.Minute).String())
	if !r.has("breaks", "field-removed", "Alert", "spec.summary") || !r.has("migrate", "deprecated", "Provider", "deprecated") {
		sh.t.Errorf("findings %+v", r.Findings)
	}
	if !slices.ContainsFunc(r.NotRehearsed, func(o struct {
		Object   struct{ Kind, Name string }
		Reason   string
		Intended bool
	}) bool {
		return o.Object.Name == "fleet" && strings.Contains(o.Reason, "not ready with either version")
	}) {
		sh.t.Errorf("not rehearsed: %+v", r.NotRehearsed)
	}
}
