package script_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// doneAnyway are the commands that succeed in a condition in which others fail,
// with the reason. An entry that no command needs is an error.
var doneAnyway = []struct{ commands, conditions, reason string }{
	{"flux", "no Flux, no rights, refused", "prints the help, as 'flux --help'"},
	{"flux completion bash, flux completion fish, flux completion powershell, flux completion zsh", "no Flux, no rights, refused", "needs no cluster"},
	{"flux build artifact, flux envsubst, flux options, flux plugin list, flux plugin update", "no Flux, no rights, refused", "needs no cluster"},
	{"flux events", "no Flux", "events outlive their objects; there are none"},
	{"flux uninstall", "no Flux", "there is nothing to remove"},
}

// excuses returns the entries of doneAnyway by command and condition.
func excuses() map[[2]string]bool {
	all := map[[2]string]bool{}
	for _, row := range doneAnyway {
		for _, path := range strings.Split(row.commands, ", ") {
			for _, condition := range strings.Split(row.conditions, ", ") {
				all[[2]string{path, condition}] = true
			}
		}
	}
	return all
}

// usageError matches the errors of commands that have not started their work.
var usageError = regexp.MustCompile(`(?m)^✗ (.*\b(is|are) required\b|unknown (command|flag|shorthand)|accepts |requires |invalid argument)`)

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
	// mustFail means that commands fail, except for those in doneAnyway. With
	// works they fail at their work and not because of their arguments.
	mustFail, works bool
	// process runs flux as a process, without flags.
	process bool
}

func exitConditions(viewer, refused string) []exitCondition {
	always := func(args ...string) func(string) []string { return func(string) []string { return args } }
	return []exitCondition{
		{name: "bare", args: always(), kubeconfig: viewer, process: true},
		{name: "-A", args: always("-A"), user: "viewer"},
		{name: "unknown kind", args: always("nonsense/app"), user: "viewer", mustFail: true},
		{name: "no Flux", args: workOf, without: true, user: "viewer", mustFail: true, works: true},
		{name: "no rights", args: workOf, user: "unprivileged", mustFail: true, works: true},
		{name: "refused", args: workOf, kubeconfig: refused, mustFail: true, works: true},
	}
}

// TestExitCodes runs every command without arguments, with -A, with an unknown kind, without Flux,
// without permissions and without a server. A command exits with a code that it declares, and with that
// for errors if it cannot do its work.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	dir := t.TempDir()
	if err := cluster.Seed(t.Context(), []byte(viewerRole), ""); err != nil {
		t.Fatal(err)
	}
	refused := filepath.Join(dir, "refused")
	if err := os.WriteFile(refused, []byte(refusedKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	writeExitFiles(t, dir)
	root := root.NewRoot(app.New(nil, nil, nil, func(string) string { return "" }, time.Now), nil)
	paths, exits := commandPaths(root), map[string]exitTable{}
	for _, path := range paths {
		cmd, _, err := root.Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		exits[path] = exitTable{command.ExitsOf(cmd), command.ErrorExit(cmd), cmd.HasSubCommands()}
	}
	results := map[string][]exitResult{}
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
			c.kubeconfig = twoContexts(t, c.kubeconfig, dir)
			for path, result := range runAll(t.Context(), dir, paths, c) {
				if results[path] == nil {
					results[path] = make([]exitResult, len(conditions))
				}
				results[path][i] = result
			}
		}
	}
	unused := excuses()
	for _, path := range paths {
		for i, c := range conditions {
			result, cell := results[path][i], [2]string{path, c.name}
			_, excused := unused[cell]
			_, declared := exits[path].codes[result.code]
			switch {
			case !declared:
				t.Errorf("%s exits with %d in the condition %q, which it does not declare", path, result.code, c.name)
			case c.mustFail && result.code == 0 && !excused:
				t.Errorf("%s exits 0 in the condition %q: it cannot have done its work", path, c.name)
			case result.code == 0 && strings.Contains(result.stderr, "✗ "):
				t.Errorf("%s reports a failure in the condition %q and exits 0:\n%s", path, c.name, result.stderr)
			case result.code == 0:
				delete(unused, cell)
			case c.mustFail && result.code != exits[path].failed:
				t.Errorf("%s exits with %d in the condition %q, want %d", path, result.code, c.name, exits[path].failed)
			case c.works && !exits[path].group && usageError.MatchString(result.stderr):
				t.Errorf("%s does not start its work in the condition %q: add its arguments to work:\n%s", path, c.name, result.stderr)
			}
		}
	}
	for cell := range unused {
		t.Errorf("doneAnyway: %s does not succeed in the condition %q", cell[0], cell[1])
	}
}

// exitTable has what a command declares about its exit codes.
type exitTable struct {
	codes  command.Exits
	failed int
	// group is set for a command with subcommands.
	group bool
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
func runAll(ctx context.Context, dir string, paths []string, c exitCondition) map[string]exitResult {
	results := map[string]exitResult{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.NumCPU())
	for _, path := range paths {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			result := runIn(ctx, dir, path, c)
			mu.Lock()
			defer mu.Unlock()
			results[path] = result
		})
	}
	wg.Wait()
	return results
}

func runIn(ctx context.Context, dir, path string, c exitCondition) exitResult {
	if c.process {
		return runProcess(ctx, dir, path, c)
	}
	env := map[string]string{
		"HOME": dir, "PATH": dir,
		"FLUXCD_PLUGINS": filepath.Join(dir, "plugins"), "FLUXCD_PLUGIN_CATALOG": filepath.Join(dir, "catalog"),
	}
	for _, host := range []string{"GITHUB", "GITLAB", "GITEA", "BITBUCKET"} {
		env[host+"_TOKEN"] = "secret"
	}
	args := slices.Concat(strings.Fields(path)[1:], inFolder(dir, c.args(path)))
	if path != "flux" {
		args = append(args, "--timeout=1m", "--kubeconfig="+c.kubeconfig)
		if c.user != "" {
			args = append(args, "--as="+c.user)
		}
	}
	var out, err bytes.Buffer
	a := app.New(strings.NewReader(""), &out, &err, func(name string) string { return env[name] }, time.Now)
	code := root.Run(ctx, a, args)
	if os.Getenv("SHOW") != "" {
		fmt.Printf("==== %s: flux %s: exit %d\n%s%s", c.name, strings.Join(args, " "), code, clip(out.String()), clip(err.String()))
	}
	return exitResult{code, err.String()}
}

// exitResult is the exit code of a command and its standard error.
type exitResult struct {
	code   int
	stderr string
}

// runProcess runs flux like the scripts.
func runProcess(ctx context.Context, dir, path string, c exitCondition) exitResult {
	ctx, cancel := context.WithTimeout(ctx, testlimit.Wait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "flux", append(strings.Fields(path)[1:], c.args(path)...)...)
	cmd.Dir = dir
	cmd.Env = []string{"KUBECONFIG=" + c.kubeconfig, "HOME=" + dir, "PATH=" + dir, "FLUXCD_PLUGIN_CATALOG=" + filepath.Join(dir, "catalog")}
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return exitResult{-1, err.Error()}
	}
	if os.Getenv("SHOW") != "" {
		fmt.Printf("==== %s: %s: exit %d\n%s", c.name, path, cmd.ProcessState.ExitCode(), clip(string(out)))
	}
	return exitResult{cmd.ProcessState.ExitCode(), string(out)}
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

// twoContexts returns a kubeconfig in which the current context also exists as one and two.
func twoContexts(t *testing.T, kubeconfig, dir string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["one"], config.Contexts["two"] = config.Contexts[config.CurrentContext], config.Contexts[config.CurrentContext]
	path := filepath.Join(dir, filepath.Base(kubeconfig)+"-two")
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
