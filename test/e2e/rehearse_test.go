package e2e_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testsops"
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

// rehearse runs flux rehearse and checks the exit code.
func rehearse(sh *shell, dir string, code int, args ...string) rehearsed {
	sh.t.Helper()
	stdout, stderr, err := sh.in(dir).try("flux", append([]string{"rehearse", "-o", "json"}, args...)...)
	if exitCode(err) != code {
		sh.t.Fatalf("%v, want exit code %d\n%s%s", err, code, stdout, stderr)
	}
	var r rehearsed
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		sh.t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	return r
}

// checkRemoved checks that no sandbox is left in the temporary directory.
func checkRemoved(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v (%v)", left, err)
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
	if want := "No differences between Flux 2.9.6 and 2.10.0"; err != nil || !strings.Contains(text, want) ||
		exact < len(r.Controllers) && !strings.Contains(text, "did not run in the version of Flux 2.10.0: changes specific to that version are unknown.") {
		sh.t.Errorf("%v, want %q:\n%s", err, want, text)
	}
}

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
	keys, err := testsops.New()
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

// rehearseCluster rehearses the objects of a cluster, whose Secrets are not read.
func rehearseCluster(sh *shell) {
	cluster := testcluster.Start(sh.t, "none")
	sh = sh.with("KUBECONFIG=" + cluster.Kubeconfig)
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
