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

	"github.com/fluxkit/flux/internal/shell"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testdocs"
	"github.com/fluxkit/flux/test/support/testgitea"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// firstPage is the page whose sandbox and repository the others use.
const firstPage = "02-get-started.md"

// guide is a reader who works through docs/guide in one shell.
type guide struct {
	*story
	// home is the reader's home directory, and state a script that restores the variables and the
	// directory of the shell.
	home, state string
}

// TestGuide runs the commands of docs/guide in a sandbox, page by page, and compares their outputs with
// the documented ones. GUIDE=PREFIX runs the first page and those whose names have the prefix, and
// UPDATE=1 writes outputs that differ into the pages.
func TestGuide(t *testing.T) {
	t.Parallel()
	s := newUser(t)
	sandbox := testtemp.Short(t)
	t.Cleanup(func() {
		if err := (&testcluster.Cluster{Dir: sandbox}).Down(); err != nil {
			t.Error(err)
		}
	})
	home := t.TempDir()
	s.env = append(s.env, "FLUX_SANDBOX_DIR="+sandbox, "HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	g := &guide{story: s, home: home, state: filepath.Join(t.TempDir(), "state")}
	g.save("cd " + home + "\n")
	pages, err := filepath.Glob(filepath.Join(testcluster.Root(), "docs", "guide", "[0-9]*.md"))
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(pages, func(page string) bool { return filepath.Base(page) == firstPage })
	for _, page := range slices.Concat(pages[first:first+1], slices.Delete(slices.Clone(pages), first, first+1)) {
		name := filepath.Base(page)
		if name != firstPage && !strings.HasPrefix(name, os.Getenv("GUIDE")) {
			continue
		}
		if !t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) { g.as(t).page(page, sandbox) }) && name == firstPage {
			return
		}
	}
}

func (g *guide) as(t *testing.T) *guide {
	reader := *g
	reader.story = g.story.as(t)
	return &reader
}

func (g *guide) save(state string) {
	g.Helper()
	if err := os.WriteFile(g.state, []byte(state), 0o600); err != nil {
		g.Fatal(err)
	}
}

// page runs the blocks of a page, which begins in the state in which the first page ended.
func (g *guide) page(path, sandbox string) {
	g.Helper()
	d := testdocs.Read(g, path)
	if filepath.Base(path) != firstPage {
		if output, code := g.bash("flux wait all -A", ""); code != 0 { // for what the last page has pushed
			g.Fatalf("before the page: %s", output)
		}
	}
	g.provide(string(d.Source))
	updated, copied, output := "", 0, ""
	defer func() {
		if os.Getenv("UPDATE") == "" || copied == 0 {
			return
		}
		if err := os.WriteFile(path, []byte(updated+string(d.Source[copied:])), 0o600); err != nil {
			g.Error(err)
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
			output = strings.NewReplacer(g.home, "~", sandbox, "~/flux-sandbox").Replace(testdocs.WithoutProgress(output))
			if want := b.Attributes["exit"]; code != 0 && want != "1" || code != 1 && want != "" {
				g.Fatalf("line %d ends with exit code %d:\n%s%s", b.Line, code, b.Text, output)
			}
		case b.Attributes["order"] == "any" && testdocs.MatchesInAnyOrder(b.Text, output):
		case !testdocs.Matches(b.Text, output):
			updated += string(d.Source[copied:b.Start]) + output
			copied = b.End
			if os.Getenv("UPDATE") == "" {
				g.Errorf("line %d prints\n%sbut documented is\n%s(UPDATE=1 writes the output into the page)", b.Line, output, b.Text)
			}
		}
	}
}

// provide starts the servers and adds the programs that a page uses.
func (g *guide) provide(source string) {
	g.Helper()
	if strings.Contains(source, "$GITEA_HOST") {
		server := testgitea.Start(g)
		g.env = append(slices.Clip(g.env), "GITEA_HOST="+server.Hostname, "GITEA_CA="+server.CAFile, "GITEA_TOKEN="+server.User(g, "ada").Token)
	}
	if strings.Contains(source, "$WEBHOOK_URL") {
		g.env = append(slices.Clip(g.env), "WEBHOOK_URL="+eventServer(g.T))
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
	g.Helper()
	for _, name := range names {
		cmd := exec.CommandContext(g.Context(), filepath.Join(testcluster.Root(), "tools", "build"), name)
		cmd.Stderr = os.Stderr
		program, err := cmd.Output()
		if err != nil {
			g.Fatalf("building %s: %v", name, err)
		}
		if _, code := g.bash("export PATH="+shell.Quote(filepath.Dir(string(program)))+":$PATH", ""); code != 0 {
			g.Fatalf("%s: exit code %d", program, code)
		}
	}
}

// bash runs commands in the directory and with the variables of those before, up to the first that
// fails, and returns what they print. Standard input is text, and $3 is the first of the arguments.
func (g *guide) bash(commands, text string, args ...string) (output string, code int) {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), stepTime)
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
		g.Fatalf("%v:\n%s%s", err, commands, out)
	}
	return string(out), exitCode(err)
}
