package script_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testterminal"
)

// hostile is text that attacks a terminal: colors, clearing the screen, the title and
// the clipboard of the terminal, C1 controls, overwriting other text, a forged
// message, the direction of text, hidden characters.
const hostile = "QQ\x1b[31m\x1b[2J\x1b]0;owned\a\x1b]52;c;b3duZWQ=\a\u009b5m\u0090q\u009c\b\b\bok\rdone\x7f\u202egnp\u2066x\u2069\u200bz\ufeff\n✔ all is well\n\t\u2028next"

// hostileObjects is an object of each kind, with hostile text wherever the API
// takes any text. A Kustomization without children, a missing source and a
// failed release lead the commands to the messages.
func hostileObjects() string {
	text := fmt.Sprintf("%q", hostile) // a string of Go is one of YAML here
	conditions := func(status string) string {
		return `conditions: [{type: Ready, status: "` + status + `", reason: Failed, message: ` + text + `, lastTransitionTime: "2026-11-01T10:00:00Z"}]`
	}
	artifact := `artifact: {digest: "sha256:` + strings.Repeat("1", 64) + `", lastUpdateTime: "2026-11-01T10:00:00Z", path: a, revision: ` + text + `, url: "http://127.0.0.1:1/a", metadata: {"org.opencontainers.image.source": ` + text + `, "org.opencontainers.image.revision": ` + text + `}}`
	var b strings.Builder
	object := func(version, kind, spec, status string) {
		fmt.Fprintf(&b, "---\napiVersion: %s\nkind: %s\nmetadata:\n  name: app\n  namespace: flux-system\n  annotations: {note: %s, reconcile.fluxcd.io/requestedAt: %s}\nspec: {%s}\nstatus: {%s}\n", version, kind, text, text, spec, status)
	}
	object("source.toolkit.fluxcd.io/v1", "GitRepository", `interval: 1m, url: "https://127.0.0.1/x"`, artifact+`, lastHandledReconcileAt: `+text+`, `+conditions("False"))
	object("source.toolkit.fluxcd.io/v1", "OCIRepository", `interval: 1m, url: "oci://127.0.0.1/x"`, artifact+`, `+conditions("False"))
	object("source.toolkit.fluxcd.io/v1", "Bucket", `interval: 1m, endpoint: "127.0.0.1", bucketName: `+text, artifact+`, `+conditions("False"))
	object("source.toolkit.fluxcd.io/v1", "HelmRepository", `interval: 1m, url: "https://127.0.0.1/x"`, artifact+`, `+conditions("False"))
	object("source.toolkit.fluxcd.io/v1", "HelmChart", `interval: 1m, chart: `+text+`, version: `+text+`, sourceRef: {kind: HelmRepository, name: app}`, artifact+`, `+conditions("False"))
	object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", `interval: 1m, prune: true, path: `+text+`, sourceRef: {kind: GitRepository, name: app}, postBuild: {substitute: {var: `+text+`}}`,
		`lastAppliedRevision: `+text+`, lastAttemptedRevision: `+text+`, lastHandledReconcileAt: `+text+`, inventory: {entries: [{id: `+text+`, v: v1}, {id: `+fmt.Sprintf("%q", "apps_"+hostile+"__ConfigMap")+`, v: `+text+`}, {id: "flux-system_app__ConfigMap", v: v1}, {id: `+fmt.Sprintf("%q", "_x\x1b[2J_v1_"+"Ki\x1bnd")+`, v: v1}]}, `+conditions("False"))
	object("helm.toolkit.fluxcd.io/v2", "HelmRelease", `interval: 1m, chart: {spec: {chart: `+text+`, version: `+text+`, sourceRef: {kind: HelmRepository, name: app}}}, values: {a: `+text+`}`,
		`lastAttemptedRevision: `+text+`, lastHandledReconcileAt: `+text+`, history: [{chartName: `+text+`, chartVersion: `+text+`, configDigest: x, digest: x, firstDeployed: "2026-11-01T10:00:00Z", lastDeployed: "2026-11-01T10:00:00Z", name: app, namespace: flux-system, status: failed, version: 1, appVersion: `+text+`}], `+conditions("False"))
	object("image.toolkit.fluxcd.io/v1", "ImageRepository", `interval: 1m, image: `+text, `canonicalImageName: `+text+`, lastScanResult: {scanTime: "2026-11-01T10:00:00Z", tagCount: 1, latestTags: [`+text+`]}, `+conditions("False"))
	object("image.toolkit.fluxcd.io/v1", "ImagePolicy", `imageRepositoryRef: {name: app}, policy: {semver: {range: `+text+`}}`, `latestRef: {name: `+text+`, tag: `+text+`}, `+conditions("False"))
	object("image.toolkit.fluxcd.io/v1", "ImageUpdateAutomation", `interval: 1m, sourceRef: {kind: GitRepository, name: app}, git: {commit: {author: {email: a@b.c}}}`, `lastPushCommit: `+text+`, `+conditions("False"))
	object("notification.toolkit.fluxcd.io/v1", "Receiver", `type: generic, secretRef: {name: app}, resources: [{kind: GitRepository, name: app}]`, `webhookPath: `+text+`, `+conditions("False"))
	object("notification.toolkit.fluxcd.io/v1beta3", "Provider", `type: generic, channel: `+text, ``)
	object("notification.toolkit.fluxcd.io/v1beta3", "Alert", `summary: `+text+`, providerRef: {name: app}, eventSources: [{kind: GitRepository, name: app}]`, ``)
	object("source.extensions.fluxcd.io/v1beta1", "ArtifactGenerator", `sources: [{alias: a, kind: GitRepository, name: app}], artifacts: [{name: x, copy: [{from: "@a/**", to: "@artifact/"}]}]`,
		`observedSourcesDigest: `+text+`, `+conditions("False"))
	object("source.toolkit.fluxcd.io/v1", "ExternalArtifact", `sourceRef: {kind: ArtifactGenerator, name: app}`, artifact+`, `+conditions("False"))
	for _, k := range controllers.Operator {
		object(k.APIVersion(), k.Kind, `distribution: {version: `+text+`}`, `lastAppliedRevision: `+text+`, lastExportedRevision: `+text+`, `+conditions("False"))
	}
	for i, kind := range []string{"Kustomization", "HelmRelease", "GitRepository"} {
		version := map[string]string{"Kustomization": "kustomize.toolkit.fluxcd.io/v1", "HelmRelease": "helm.toolkit.fluxcd.io/v2", "GitRepository": "source.toolkit.fluxcd.io/v1"}[kind]
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Event\nmetadata: {name: event-%d, namespace: flux-system}\ninvolvedObject: {apiVersion: %s, kind: %s, name: app, namespace: flux-system, fieldPath: %s}\nreason: %s\nmessage: %s\ntype: Warning\nsource: {component: %s}\nlastTimestamp: \"2026-11-01T10:00:00Z\"\nfirstTimestamp: \"2026-11-01T10:00:00Z\"\ncount: 2\n", i, version, kind, text, text, text, text)
	}
	fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: flux-system, annotations: {note: %s}, labels: {kustomize.toolkit.fluxcd.io/name: app, kustomize.toolkit.fluxcd.io/namespace: flux-system}}\ndata: {a: %s}\n", text, text)
	return strings.ReplaceAll(b.String(), "\nstatus: {}", "")
}

// readsOf are arguments with which a command reads what hostileObjects are, nil
// for what changes the cluster or reads nothing of it.
func readsOf(path string) [][]string {
	words := strings.Fields(path)
	if len(words) == 1 {
		return nil
	}
	formats := func(args []string, formats ...string) [][]string {
		all := [][]string{args}
		for _, f := range formats {
			all = append(all, slices.Concat(args, []string{"-o", f}))
		}
		return all
	}
	kind := len(words) > 2
	switch words[1] {
	case "get":
		if kind && words[len(words)-1] != "kustomizations" && words[len(words)-1] != "helmreleases" {
			return [][]string{{"-A"}}
		}
		return formats([]string{"-A"}, "wide", "json", "yaml", "name", "custom-columns=A:.metadata.annotations.note,M:.status.conditions[*].message")
	case "export":
		return formats([]string{"-A"}, "json")
	case "tree":
		if !kind {
			return nil
		}
		text := formats([]string{"app"}, "wide", "json", "yaml", "dot", "mermaid")
		if words[2] != "kustomization" {
			return text // pictures of other kinds are drawn by the same code, which compiles Graphviz each time
		}
		return append(text, []string{"app", "-o", "svg"}, []string{"app", "-o", "html"})
	case "history":
		if kind {
			return formats([]string{"app"}, "wide", "json", "yaml")
		}
	case "orphans":
		return formats([]string{"-A"}, "wide", "json")
	case "trace", "status", "why":
		all := formats([]string{"ks/app"}, "json", "yaml")
		return append(all, formats([]string{"hr/app"}, "json")...)
	case "deps":
		return formats(nil, "wide", "json", "yaml", "dot", "mermaid", "svg", "html")
	case "events":
		return append(formats([]string{"-A"}, "wide", "json", "yaml"), []string{"--for", "Kustomization/app"})
	case "stats":
		return formats([]string{"-A"}, "json", "yaml")
	case "debug":
		if kind {
			return append(formats([]string{"app", "--show-status"}, "json"), []string{"app", "--show-values"}, []string{"app", "--show-vars"}, []string{"app", "--show-history"})
		}
	case "wait", "reconcile", "resume":
		if kind {
			return [][]string{{"app"}}
		}
	case "check", "version", "logs":
		return [][]string{nil}
	}
	return nil
}

// sequences are what the program itself sends to a terminal: colors, and what
// moves the cursor and clears where a line is drawn again.
var sequences = regexp.MustCompile(`\x1b\[(?:0|1|2|22|3[1236]|1;31|31;1|0;22|22;0;0)(?:;\d+)*m|\x1b\[\d*[AJKH]|\x1b\[\?7[lh]|\r\n|\r`)

// controlled returns what in a text could control a terminal or hide something.
// Documents keep bidirectional and zero-width characters for programs.
func controlled(text string, document bool) string {
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError, unicode.IsControl(r):
			return fmt.Sprintf("%q in %q", r, around(text, i))
		case document:
		case unicode.Is(unicode.Bidi_Control, r), r == '\u200b', r == '\ufeff', r == '\u2028':
			return fmt.Sprintf("%q in %q", r, around(text, i))
		}
	}
	return ""
}

func around(text string, i int) string { return text[max(0, i-60):min(len(text), i+40)] }

// forged is a message of the program's own kind that an object brought in.
var forged = regexp.MustCompile(`(?m)^✔ all is well`)

// TestHostileObjects reads hostile objects through a pipe and on a terminal.
func TestHostileObjects(t *testing.T) {
	t.Parallel()
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	if err := errors.Join(cluster.InstallCRDs(t.Context()), cluster.InstallOperator(t.Context())); err != nil {
		t.Fatal(err)
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"
	if err := cluster.Seed(t.Context(), []byte(namespace+hostileObjects()), "flux-system"); err != nil {
		t.Fatal(err)
	}
	t.Run("pipe", func(t *testing.T) { hostileInPipe(t, cluster) })
	t.Run("terminal", func(t *testing.T) { hostileOnTerminal(t, cluster) })
}

// hostileInPipe runs every command that reads, in every format: nothing that is printed controls a terminal.
func hostileInPipe(t *testing.T, cluster *testcluster.Cluster) {
	t.Helper()
	dir := t.TempDir()
	var ran, shown atomic.Int32
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4*runtime.NumCPU())
	for _, path := range commandPaths(root.NewRoot(app.New(nil, nil, nil, func(string) string { return "" }, time.Now), nil)) {
		for _, args := range readsOf(path) {
			timeout := "--timeout=3s"
			if format := formatOf(args); format == "svg" || format == "html" {
				timeout = "--timeout=1m" // the helper processes compile Graphviz
			}
			args = slices.Concat(strings.Fields(path)[1:], args, []string{timeout, "--kubeconfig=" + cluster.Kubeconfig})
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				stdout, stderr := runHere(t.Context(), dir, args)
				ran.Add(1)
				if strings.Contains(stdout+stderr, "QQ") {
					shown.Add(1)
				}
				checkPrinted(t, path, args, stdout, stderr)
			})
		}
	}
	wg.Wait()
	t.Logf("%d command lines, %d print hostile text", ran.Load(), shown.Load())
	if shown.Load() < ran.Load()*2/3 {
		t.Errorf("only %d of %d command lines print what the objects hold", shown.Load(), ran.Load())
	}
}

// checkPrinted reports what of the output of a command line could do harm.
func checkPrinted(t *testing.T, path string, args []string, stdout, stderr string) {
	format := formatOf(args)
	document := format == "yaml" || strings.HasPrefix(path, "flux debug") && !slices.Contains(args, "--show-vars") || strings.HasPrefix(path, "flux export") && format == ""
	if found := controlled(stdout, document); found != "" {
		t.Errorf("flux %s prints %s", strings.Join(args, " "), found)
	}
	if found := controlled(stderr, false); found != "" {
		t.Errorf("flux %s reports %s", strings.Join(args, " "), found)
	}
	if strings.Contains(stderr, "control characters are not allowed") {
		t.Errorf("flux %s cannot print what the API takes: %s", strings.Join(args, " "), stderr)
	}
	if !document && format != "json" && forged.MatchString(stdout+stderr) {
		t.Errorf("flux %s prints a forged message:\n%s%s", strings.Join(args, " "), stdout, stderr)
	}
}

// formatOf is the value of -o in a command line.
func formatOf(args []string) string {
	if i := slices.Index(args, "-o"); i >= 0 {
		return args[i+1]
	}
	return ""
}

// runHere runs a command line with pipes.
func runHere(ctx context.Context, dir string, args []string) (stdout, stderr string) {
	env := map[string]string{"HOME": dir, "PATH": dir, "FLUXCD_PLUGINS": filepath.Join(dir, "plugins")}
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(name string) string { return env[name] }, time.Now)
	a.DiagnosisTimeout = 2 * time.Second
	a.Helpers.Find = func() (string, error) {
		flux, err := exec.LookPath("flux")
		return filepath.Join(filepath.Dir(flux), helper.Program), err
	}
	root.Run(ctx, a, args)
	return out.String(), err.String()
}

// hostileOnTerminal runs commands on a terminal, which gets no other sequences than those of the program.
func hostileOnTerminal(t *testing.T, cluster *testcluster.Cluster) {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"get", "all", "-A"}, {"get", "ks", "-o", "wide"}, {"get", "ks", "-o", "yaml"}, {"get", "ks", "-o", "jsonpath={.items[*].status.conditions[*].message}"},
		{"get", "ks", "-o", "go-template={{range .items}}{{.metadata.annotations.note}}{{end}}"},
		{"tree", "ks", "app"}, {"tree", "ks", "app", "-o", "wide"}, {"tree", "ks", "app", "-o", "yaml"}, {"why", "ks/app"}, {"why"}, {"status", "ks/app"}, {"status", "hr/app"},
		{"trace", "configmap", "app"}, {"deps"}, {"events", "-A"}, {"export", "ks", "--all"}, {"debug", "ks", "app", "--show-vars"}, {"debug", "hr", "app", "--show-values"},
		{"reconcile", "ks", "app"}, {"wait", "ks", "app"}, {"stats"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
		cmd := exec.CommandContext(ctx, "flux", append(args, "--timeout=10s", "--kubeconfig="+cluster.Kubeconfig)...)
		cmd.Env = []string{"HOME=" + dir, "PATH=" + dir, "TERM=xterm-256color"}
		terminal, err := testterminal.Start(cmd, 120, 40)
		if err != nil {
			t.Fatal(err)
		}
		_ = terminal.Wait() // some fail, and ought to
		cancel()
		raw := terminal.Raw()
		if !strings.Contains(raw, "QQ") && args[0] != "stats" && args[0] != "deps" {
			t.Errorf("flux %s does not print what the objects hold:\n%s", strings.Join(args, " "), raw)
		}
		if found := controlled(sequences.ReplaceAllString(raw, ""), false); found != "" {
			t.Errorf("flux %s prints %s", strings.Join(args, " "), found)
		}
	}
}
