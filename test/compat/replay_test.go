// Package compat_test replays the recorded contract: the output of the CLI of Flux 2.9 on
// a cluster in a defined state.
package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testregistry"
)

// answer is a recorded command with its result.
type answer struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
}

// TestReplay replays the recording on an installation with all components.
func TestReplay(t *testing.T) {
	t.Parallel()
	var recorded []answer
	decode(t, "recorded.json", &recorded)
	replay(t, recorded, documented(t, ""), prepare(t, controllers.Extras(), ""))
}

// TestReplayDefault replays it on an installation with the default components: default.json contains the commands whose
// results then differ. With REFERENCE, the path of a directory with the CLI of Flux 2.9, it records them.
func TestReplayDefault(t *testing.T) {
	t.Parallel()
	var recorded, differing []answer
	decode(t, "recorded.json", &recorded)
	reference := os.Getenv("REFERENCE")
	run := prepare(t, nil, reference)
	if reference != "" {
		for _, all := range recorded {
			got := run(t, all.Command)
			if got.Exit != all.Exit || got.Stdout != current(all.Stdout) {
				differing = append(differing, answer{all.Command, got.Exit, recordedVersions(got.Stdout), got.Stderr})
			}
		}
		encode(t, "default.json", differing)
		return
	}
	decode(t, "default.json", &differing)
	for i, all := range recorded {
		for _, other := range differing {
			if other.Command == all.Command {
				recorded[i] = other
			}
		}
	}
	replay(t, recorded, documented(t, onDefault), run)
}

// onDefault marks rows of docs/compat.md that apply to an installation with the default components only.
const onDefault = " on a default installation"

// replay runs the recorded commands, and compares the results.
func replay(t *testing.T, recorded []answer, differences map[string]string, run func(*testing.T, string) answer) {
	t.Helper()
	pending := pendingCommands(t)
	used := map[string]bool{}
	equal := 0
	for _, want := range recorded {
		if prefix, ok := pending.of(want.Command); ok {
			used[prefix] = true
			continue
		}
		got := run(t, want.Command)
		diff := compare(want, got)
		reason, expected := differences[want.Command]
		switch {
		case diff == "" && expected && !used[want.Command]:
			t.Errorf("%s no longer differs: remove its row from docs/compat.md", want.Command)
		case diff == "":
			equal++
		case expected:
			used[want.Command] = true
			t.Logf("differs as documented: %s: %s\n%s", want.Command, reason, diff)
		default:
			t.Errorf("%s differs (-recorded +flux):\n%s\nstderr:\n%s", want.Command, diff, got.Stderr)
		}
	}
	for command := range differences {
		if !used[command] {
			t.Errorf("docs/compat.md lists %q, which does not differ or was not recorded", command)
		}
	}
	for _, prefix := range pending {
		if !used[prefix] {
			t.Errorf("pending.txt lists %q, which is not a prefix of a recorded command", prefix)
		}
	}
	t.Logf("%d of %d recorded commands are equal, %d differ as documented", equal, len(recorded), len(differences))
}

// TestPendingCommandsDoNotExist checks that pending.txt lists no command that exists.
func TestPendingCommandsDoNotExist(t *testing.T) {
	t.Parallel()
	bin := testcluster.Programs(t)
	for _, prefix := range pendingCommands(t) {
		words := strings.Fields(prefix)
		ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
		out, err := exec.CommandContext(ctx, filepath.Join(bin, "flux"), words[1:]...).CombinedOutput()
		cancel()
		if err == nil || !strings.Contains(string(out), "unknown command") {
			t.Errorf("%s exists: remove it from pending.txt (it printed %q)", prefix, out)
		}
	}
}

func compare(want, got answer) string {
	var b strings.Builder
	if want.Exit != got.Exit {
		fmt.Fprintf(&b, "exit code %d, now %d\n", want.Exit, got.Exit)
	}
	if stdout := current(want.Stdout); stdout != got.Stdout {
		b.WriteString(cmp.Diff(stdout, got.Stdout))
	}
	return b.String()
}

// recordedMinor is the minor version of Flux in the recording, whose outputs contain its
// API versions.
const recordedMinor = "2.9"

// shipped contains the versions of the controllers in the recording.
var shipped = map[string]string{
	"source-controller": "v1.9.4", "kustomize-controller": "v1.9.4", "helm-controller": "v1.6.3",
	"notification-controller": "v1.9.3", "image-reflector-controller": "v1.2.4",
	"image-automation-controller": "v1.2.4", "source-watcher": "v2.2.2",
}

// current replaces recorded versions by those of the distribution on the cluster, and recordedVersions the reverse.
func current(s string) string {
	d, _ := controllers.FindDistribution(recordedMinor)
	return replaceVersions(s, "2.9.4", d.Version, shipped, d.Tags)
}

func recordedVersions(s string) string {
	d, _ := controllers.FindDistribution(recordedMinor)
	return replaceVersions(s, d.Version, "2.9.4", d.Tags, shipped)
}

func replaceVersions(s, flux, newFlux string, tags, newTags map[string]string) string {
	s = strings.ReplaceAll(s, "flux-v"+flux, "flux-v"+newFlux)
	for _, c := range controllers.All {
		pattern := regexp.MustCompile(regexp.QuoteMeta(c.Name) + `("?: "?)` + regexp.QuoteMeta(tags[c.Name]))
		s = pattern.ReplaceAllString(s, c.Name+"${1}"+newTags[c.Name])
	}
	return s
}

// prepare creates the recorded cluster with further components, and returns a function that runs a command on it, with the
// CLI in the directory reference if it is not "". Objects of components that are not installed are left out.
func prepare(t *testing.T, components []string, reference string) func(*testing.T, string) answer {
	t.Helper()
	bin := testcluster.Programs(t)
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("files")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "NAME=web", "HOME="+dir,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	registry := emptyRegistry(t)
	run := func(t *testing.T, command string) answer {
		got := execute(t, strings.ReplaceAll(command, recordedRegistry, registry), dir, env)
		got.Stdout = strings.ReplaceAll(got.Stdout, registry, recordedRegistry)
		return got
	}
	if got := run(t, "flux install --version="+recordedMinor+" --components-extra="+strings.Join(components, ",")); got.Exit != 0 {
		t.Fatalf("installing: %s", got.Stderr)
	}
	text, err := os.ReadFile("objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := strings.Split(string(text), "\n---\n")
	if len(components) == 0 {
		objects = slices.DeleteFunc(objects, func(o string) bool {
			return strings.Contains(o, "apiVersion: image.toolkit.fluxcd.io/") || strings.HasPrefix(o, "apiVersion: source.extensions.fluxcd.io/")
		})
	}
	if err := cluster.Seed(t.Context(), []byte(strings.Join(objects, "\n---\n")), ""); err != nil {
		t.Fatal(err)
	}
	if reference != "" {
		env = append(env, "PATH="+reference+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return run
}

// recordedRegistry is the address of the registry in the recording.
const recordedRegistry = "127.0.0.1:15000"

// emptyRegistry starts an empty registry as in the recording and returns its address.
func emptyRegistry(t *testing.T) string {
	t.Helper()
	r := testregistry.Start()
	t.Cleanup(r.Close)
	return r.Host()
}

// execute runs a recorded line in a shell. Standard input is closed unless the
// line redirects it.
func execute(t *testing.T, command, dir string, env []string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	if !strings.Contains(command, " < ") {
		command += " <&-"
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("running %s: %v", command, err)
	}
	return answer{Command: command, Exit: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

func decode(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, name string, from any) {
	t.Helper()
	data, err := json.MarshalIndent(from, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(data, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

var entry = regexp.MustCompile("(?m)^\\| `(flux[^`]*)`(" + onDefault + ")? \\| (.+?) \\| (.+?) \\| (.+?) \\|$")

// documented returns the differences that docs/compat.md lists, by command, including those with a mark.
func documented(t *testing.T, mark string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testcluster.Root(), "docs", "compat.md"))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, m := range entry.FindAllStringSubmatch(string(data), -1) {
		if m[2] == "" || m[2] == mark {
			list[strings.ReplaceAll(m[1], `\|`, "|")] = m[5]
		}
	}
	return list
}

// prefixes lists prefixes of commands that are not implemented yet.
type prefixes []string

func (p prefixes) of(command string) (string, bool) {
	for _, prefix := range p {
		if command == prefix || strings.HasPrefix(command, prefix+" ") {
			return prefix, true
		}
	}
	return "", false
}

func pendingCommands(t *testing.T) prefixes {
	t.Helper()
	data, err := os.ReadFile("pending.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list prefixes
	for _, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}
