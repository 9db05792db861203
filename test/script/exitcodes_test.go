package script_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/internal/cli"
	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/testcluster"
)

// exitCodeTable has the exit code of every command in every condition. Review each
// line: a 0 means that the command succeeds.
const exitCodeTable = "testdata/exitcodes.txt"

// doneAnyway are the commands that succeed although the cluster has no Flux, the user
// no permissions or the server is unreachable, with the reason.
var doneAnyway = map[string]string{
	"flux":                       "prints the help, as 'flux --help'",
	"flux completion bash":       "needs no cluster",
	"flux completion fish":       "needs no cluster",
	"flux completion powershell": "needs no cluster",
	"flux completion zsh":        "needs no cluster",
	"flux envsubst":              "needs no cluster",
	"flux options":               "needs no cluster",
	"flux plugin list":           "needs no cluster",
	"flux plugin update":         "needs no cluster",
	"flux events: no Flux":       "events outlive what they are about; there are none",
	"flux uninstall: no Flux":    "there is nothing to remove",
}

// exitCondition is a situation in which a command may be unable to succeed.
type exitCondition struct {
	name string
	// args are added to the words of a command.
	args func(path string) []string
	// without means that the cluster serves no Flux kind.
	without bool
	// user is impersonated: viewer may read all objects and change none.
	user string
	// kubeconfig is "" for that of the cluster.
	kubeconfig string
	// mustFail means that commands fail, except for those in doneAnyway.
	mustFail bool
	// process runs flux as a process, without flags.
	process bool
}

func exitConditions(viewer, refused string) []exitCondition {
	always := func(args ...string) func(string) []string { return func(string) []string { return args } }
	return []exitCondition{
		{name: "bare", args: always(), kubeconfig: viewer, process: true},
		{name: "-A", args: always("-A"), user: "viewer"},
		{name: "unknown kind", args: always("nonsense/app"), user: "viewer", mustFail: true},
		{name: "no Flux", args: workOf, without: true, user: "viewer", mustFail: true},
		{name: "no rights", args: workOf, user: "unprivileged", mustFail: true},
		{name: "refused", args: workOf, kubeconfig: refused, mustFail: true},
	}
}

// workOf returns arguments with which a command sends requests to the cluster.
func workOf(path string) []string {
	words := strings.Fields(path)
	if len(words) == 1 {
		return nil
	}
	switch verb, whole := words[1], len(words) == 2; verb {
	case "get", "export":
		return []string{"-A"}
	case "reconcile", "suspend", "resume", "wait":
		return []string{"--all"}
	case "delete":
		if whole {
			return []string{"ks/app", "--silent"}
		}
		return []string{"--all", "--silent"}
	case "tree", "trace":
		if whole {
			return []string{"ks/app"}
		}
		return []string{"app"}
	case "status", "create", "trigger":
		return []string{"app"}
	case "build", "diff":
		return []string{"app", "--path", "."}
	case "debug":
		return []string{"app", "--show-status"}
	case "uninstall":
		return []string{"--silent"}
	case "push", "pull", "tag", "list":
		return []string{"oci://127.0.0.1:1/app"}
	}
	return nil
}

// TestExitCodes runs every command without arguments, with -A, with an unknown kind,
// without Flux, without permissions and without a server. UPDATE=1 rewrites the
// table: review the difference.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, "none")
	dir := t.TempDir()
	if err := cluster.Seed(t.Context(), []byte(viewerRole), ""); err != nil {
		t.Fatal(err)
	}
	refused := filepath.Join(dir, "refused")
	if err := os.WriteFile(refused, []byte(refusedKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := commandPaths(cli.NewRoot(app.New(nil, nil, nil, func(string) string { return "" }, time.Now), nil))
	codes := map[string][]string{}
	conditions := exitConditions(viewerKubeconfig(t, cluster, dir), refused)
	for _, without := range []bool{true, false} {
		if !without {
			if err := cluster.InstallCRDs(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range conditions {
			if c.without != without {
				continue
			}
			if c.kubeconfig == "" {
				c.kubeconfig = cluster.Kubeconfig
			}
			for path, code := range runAll(t.Context(), dir, paths, c) {
				if codes[path] == nil {
					codes[path] = make([]string, len(conditions))
				}
				codes[path][i] = fmt.Sprint(code)
			}
		}
	}
	for path, list := range codes {
		for i, c := range conditions {
			reason := cmp.Or(doneAnyway[path], doneAnyway[path+": "+c.name])
			if c.mustFail && list[i] == "0" && reason == "" {
				t.Errorf("%s exits 0 in the condition %q: it cannot have done its work", path, c.name)
			}
		}
	}
	got := formatExitCodes(conditions, paths, codes)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(exitCodeTable, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(exitCodeTable)
	if err != nil {
		t.Fatal(err)
	}
	if changed := diff.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); changed != "" {
		t.Errorf("exit codes (-%s +now):\n%s", exitCodeTable, changed)
	}
}

// commandPaths returns all commands except for help topics and for sandbox, which
// is another program.
func commandPaths(cmd *cobra.Command) []string {
	if cmd.Name() == "sandbox" || cmd.Hidden || cmd.IsAdditionalHelpTopicCommand() {
		return nil
	}
	paths := []string{cmd.CommandPath()}
	for _, child := range cmd.Commands() {
		paths = append(paths, commandPaths(child)...)
	}
	slices.Sort(paths)
	return paths
}

// runAll runs the commands in one condition, as many concurrently as there are processors.
func runAll(ctx context.Context, dir string, paths []string, c exitCondition) map[string]int {
	codes := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.NumCPU())
	for _, path := range paths {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			code := runIn(ctx, dir, path, c)
			mu.Lock()
			defer mu.Unlock()
			codes[path] = code
		})
	}
	wg.Wait()
	return codes
}

func runIn(ctx context.Context, dir, path string, c exitCondition) int {
	if c.process {
		return runProcess(ctx, dir, path, c)
	}
	env := map[string]string{
		"HOME": dir, "PATH": dir,
		"FLUXCD_PLUGINS": filepath.Join(dir, "plugins"), "FLUXCD_PLUGIN_CATALOG": filepath.Join(dir, "catalogue"),
	}
	args := slices.Concat(strings.Fields(path)[1:], c.args(path))
	if path != "flux" {
		args = append(args, "--timeout=3s", "--kubeconfig="+c.kubeconfig)
		if c.user != "" {
			args = append(args, "--as="+c.user)
		}
	}
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(name string) string { return env[name] }, time.Now)
	code := cli.Run(ctx, a, args)
	if os.Getenv("SHOW") != "" {
		fmt.Printf("==== %s: flux %s: exit %d\n%s%s", c.name, strings.Join(args, " "), code, clip(out.String()), clip(err.String()))
	}
	return code
}

// runProcess runs flux like the scripts: the test binary under that name.
func runProcess(ctx context.Context, dir, path string, c exitCondition) int {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Args = append(strings.Fields(path), c.args(path)...)
	cmd.Dir = dir
	cmd.Env = []string{"KUBECONFIG=" + c.kubeconfig, "HOME=" + dir, "PATH=" + dir, "FLUXCD_PLUGIN_CATALOG=" + filepath.Join(dir, "catalogue")}
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return -1
	}
	if os.Getenv("SHOW") != "" {
		fmt.Printf("==== %s: %s: exit %d\n%s", c.name, path, cmd.ProcessState.ExitCode(), clip(string(out)))
	}
	return cmd.ProcessState.ExitCode()
}

// viewerKubeconfig returns the cluster's kubeconfig for the user viewer.
func viewerKubeconfig(t *testing.T, cluster *testcluster.Cluster, dir string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "viewer"
	}
	path := filepath.Join(dir, "viewer")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func clip(text string) string {
	if len(text) > 600 {
		return text[:200] + " … " + text[len(text)-400:]
	}
	return text
}

func formatExitCodes(conditions []exitCondition, paths []string, codes map[string][]string) string {
	var b strings.Builder
	width := 0
	for _, path := range paths {
		width = max(width, len(path))
	}
	row := func(name string, cells []string) {
		fmt.Fprintf(&b, "%-*s", width, name)
		for i, cell := range cells {
			fmt.Fprintf(&b, "  %*s", len(conditions[i].name), cell)
		}
		b.WriteString("\n")
	}
	var names []string
	for _, c := range conditions {
		names = append(names, c.name)
	}
	row("", names)
	for _, path := range paths {
		row(path, codes[path])
	}
	return b.String()
}

const viewerRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: exit-codes-viewer}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
- {nonResourceURLs: ["*"], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: exit-codes-viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: exit-codes-viewer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}]
---
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
`

const refusedKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {}}]
`
