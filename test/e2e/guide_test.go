package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	shellquote "github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testdocs"
	"github.com/fluxkit/flux/test/support/testgitea"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// firstPage is the page whose sandbox and repository the other pages use.
const firstPage = "02-get-started.md"

// guide simulates a reader who runs the commands of docs/guide in one shell.
type guide struct {
	t   *testing.T
	env []string
	// sandbox is the directory of the reader's sandbox, home the home directory, and state a script that
	// restores the variables and the directory of the shell.
	sandbox, home, state string
}

// TestGuide runs the commands of the first page and of another one.
func TestGuide(t *testing.T) {
	t.Parallel()
	runGuide(t, func(page string) bool { return page == "07-troubleshooting.md" })
}

// TestNightlyGuide runs all pages. GUIDE=PREFIX runs the first page and the pages whose names have the prefix,
// and UPDATE=1 writes changed outputs to the pages.
func TestNightlyGuide(t *testing.T) {
	t.Parallel()
	runGuide(t, func(page string) bool { return strings.HasPrefix(page, os.Getenv("GUIDE")) })
}

// runGuide runs the commands of docs/guide in a sandbox, page by page, and compares their outputs with the
// documented ones.
func runGuide(t *testing.T, selected func(page string) bool) {
	t.Helper()
	g := newReader(t)
	pages, err := filepath.Glob(filepath.Join(testcluster.Root(), "docs", "guide", "[0-9]*.md"))
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(pages, func(page string) bool { return filepath.Base(page) == firstPage })
	for _, page := range slices.Concat(pages[first:first+1], slices.Delete(slices.Clone(pages), first, first+1)) {
		name := filepath.Base(page)
		if name != firstPage && !selected(name) {
			continue
		}
		if !t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) { g.as(t).page(page) }) && name == firstPage {
			return
		}
	}
}

// newReader returns a reader who has a sandbox directory, and no sandbox yet.
func newReader(t *testing.T) *guide {
	t.Helper()
	sh := newUser(t)
	sandbox, home := testtemp.Short(t), t.TempDir()
	t.Cleanup(func() {
		if err := (&testcluster.Cluster{Dir: sandbox}).Down(); err != nil {
			t.Error(err)
		}
	})
	g := &guide{t: t, sandbox: sandbox, home: home, state: filepath.Join(t.TempDir(), "state")}
	g.env = slices.DeleteFunc(sh.with("FLUX_SANDBOX_DIR="+sandbox, "HOME="+home, "GIT_CONFIG_GLOBAL="+os.DevNull).env, func(variable string) bool {
		return strings.HasPrefix(variable, "GIT_AUTHOR_") || strings.HasPrefix(variable, "GIT_COMMITTER_") // as in a new home directory
	})
	writeFile(t, filepath.Dir(g.state), filepath.Base(g.state), "cd "+home+"\n")
	return g
}

// as returns the reader for a page.
func (g *guide) as(t *testing.T) *guide {
	reader := *g
	reader.t = t
	return &reader
}

// page runs the blocks of a page, starting in the state in which the first page ended.
func (g *guide) page(path string) {
	g.t.Helper()
	d := testdocs.Read(g.t, path)
	if filepath.Base(path) != firstPage {
		if output, code := g.bash("flux wait all -A", ""); code != 0 { // for the changes that the last page has pushed
			g.t.Fatalf("before the page: %s", output)
		}
	}
	g.provide(string(d.Source))
	updated, copied, output := "", 0, ""
	defer func() {
		if os.Getenv("UPDATE") == "" || copied == 0 {
			return
		}
		if err := os.WriteFile(path, []byte(updated+string(d.Source[copied:])), 0o600); err != nil {
			g.t.Error(err)
		}
	}()
	for _, b := range d.Blocks {
		switch {
		case b.Attributes["skip"] != "":
		case b.Attributes["title"] != "":
			g.bash(`mkdir -p "$(dirname "$3")" && cat >"$3"`, b.Text, b.Attributes["title"])
		case b.Language == "sh":
			code := 0
			output, code = g.bash(b.Text, "")
			output = strings.NewReplacer(g.home, "~", g.sandbox, "~/flux-sandbox").Replace(testdocs.WithoutProgress(output))
			if want := b.Attributes["exit"]; code != 0 && want != "1" || code != 1 && want != "" {
				g.t.Fatalf("line %d ends with exit code %d:\n%s%s", b.Line, code, b.Text, output)
			}
		case b.Attributes["order"] == "any" && testdocs.MatchesInAnyOrder(b.Text, output):
		case !testdocs.Matches(b.Text, output):
			updated += string(d.Source[copied:b.Start]) + output
			copied = b.End
			if os.Getenv("UPDATE") == "" {
				g.t.Errorf("line %d prints\n%sbut documented is\n%s(UPDATE=1 writes the output into the page)", b.Line, output, b.Text)
			}
		}
	}
}

// provide starts the servers and adds the programs that a page requires.
func (g *guide) provide(source string) {
	g.t.Helper()
	if strings.Contains(source, "$GITEA_HOST") {
		server := testgitea.Start(g.t)
		g.env = append(slices.Clip(g.env), "GITEA_HOST="+server.Hostname, "GITEA_CA="+server.CAFile, "GITEA_TOKEN="+server.User(g.t, "ada").Token)
	}
	if strings.Contains(source, "$WEBHOOK_URL") {
		g.env = append(slices.Clip(g.env), "WEBHOOK_URL="+eventServer(g.t))
	}
	if strings.Contains(source, "\nsops ") {
		g.tools("sops", "age-keygen")
	}
	if strings.Contains(source, "\nhelm ") {
		g.tools("helm")
	}
}

// tools adds programs to the PATH of the reader, built from their pinned modules in tools.
func (g *guide) tools(names ...string) {
	g.t.Helper()
	for _, name := range names {
		cmd := exec.CommandContext(g.t.Context(), filepath.Join(testcluster.Root(), "tools", "build"), name)
		cmd.Stderr = os.Stderr
		program, err := cmd.Output()
		if err != nil {
			g.t.Fatalf("building %s: %v", name, err)
		}
		if _, code := g.bash("export PATH="+shellquote.Quote(filepath.Dir(string(program)))+":$PATH", ""); code != 0 {
			g.t.Fatalf("%s: exit code %d", program, code)
		}
	}
}

// bash runs commands with the directory and the variables of the previous ones, until one fails, and returns
// their output. Standard input is text, and $3 is the first of the arguments.
func (g *guide) bash(commands, text string, args ...string) (output string, code int) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), waitTime)
	defer cancel()
	const script = `. "$1"
save() { { export -p; printf 'cd %q\n' "$PWD"; } >"$1"; }
trap 'save "$1"' EXIT
set -e -o pipefail
eval "$2"`
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", script, "guide", g.state, commands}, args...)...)
	cmd.Env, cmd.Stdin = g.env, strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if exited := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exited) || ctx.Err() != nil) {
		g.t.Fatalf("%v:\n%s%s", err, commands, out)
	}
	return string(out), exitCode(err)
}
