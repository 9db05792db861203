package hostile_test

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// imported commits a cluster's directory, and then files in it, by name. Git does not check them out,
// because some cannot be files.
func imported(number int, name func(i int) string, content string) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		write(t, filepath.Join(folder, "cluster", "config.yaml"), configMap)
		commit(t, folder)
		var b bytes.Buffer
		fmt.Fprintf(&b, "blob\nmark :1\ndata %d\n%s\ncommit refs/heads/main\ncommitter a <a@example.com> 1 +0000\ndata 6\nchange\nfrom refs/heads/main^0\n", len(content), content)
		for i := range number {
			fmt.Fprintf(&b, "M 100644 :1 \"%s\"\n", name(i))
		}
		imports(t, folder, &b)
	}
}

// trees lists comparisons in which one revision has a hostile tree.
func trees() []other {
	base := words("diff --base HEAD~1 --head HEAD --path cluster")
	// Git adds files to a large directory slowly.
	named := func(format string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(format, i/1000, i) }
	}
	text := func(name string) func(int) string { return func(int) string { return name } }
	manifest := strings.Replace(configMap, "config", "other", 1)
	row := func(name string, make func(t *testing.T, folder string), exit int, want, prints string) other {
		return other{row{name: name, make: make, dir: true, exit: exit, want: want, stdout: prints}, base}
	}
	return []other{
		row("diff --base, 10^5 files of text", imported(100_000, named("cluster/docs%d/f%d.txt"), "x\n"), 0, "", ""),
		nightly(row("diff --base, 10^5 manifests", imported(100_001, named("cluster/d%d/f%d.yaml"), manifest), 2, "more than 100000 objects", "")),
		row("diff --base, a directory 2,000 levels deep", imported(1, text("cluster/"+strings.Repeat("a/", 2000)+"x.yaml"), manifest), 1, "", "ConfigMap/other created"),
		row("diff --base, a name of 50 KB", imported(1, text("cluster/"+strings.Repeat("a", 50_000)+".yaml"), manifest), 1, "", "ConfigMap/other created"),
		row("diff --base, names with control characters", imported(1, text(`cluster/\033[2J\n.yaml`), "x: [\n"), 2, `\x1b[2J`, ""),
	}
}

// zeroFiles creates a repository with two branches, each with a changed manifest and a file of 1.5 GiB
// of zeros, which is 1.8 MB in Git: one that no build reads, and a manifest.
func zeroFiles(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "cluster", "config.yaml"), configMap)
	commit(t, folder)
	const size = 3 << 29
	changed := strings.Replace(configMap, "name: config", "name: other", 1)
	stream := []io.Reader{strings.NewReader(fmt.Sprintf("blob\nmark :1\ndata %d\n", size)), io.LimitReader(zeros{}, size)}
	for _, extension := range []string{"bin", "yaml"} {
		stream = append(stream, strings.NewReader("\ncommit refs/heads/"+extension+"\ncommitter a <a@example.com> 1 +0000\ndata 6\nchange\nfrom refs/heads/main^0\n"+
			"M 100644 :1 cluster/big."+extension+"\nM 100644 inline cluster/config.yaml\ndata <<END\n"+changed+"END\n"))
	}
	imports(t, folder, io.MultiReader(stream...))
	return folder
}

// cloned clones a branch of a repository, with its work tree if checkOut is set.
func cloned(repository, branch string, checkOut bool) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		args := []string{"clone", "-q", "--no-hardlinks", "-b", branch}
		if !checkOut {
			args = append(args, "--no-checkout")
		}
		if out, err := exec.CommandContext(t.Context(), "git", append(args, repository, folder)...).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v\n%s", err, out)
		}
	}
}

// imports runs git fast-import.
func imports(t *testing.T, folder string, stream io.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-C", folder, "fast-import", "--quiet")
	cmd.Stdin = stream
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
}

// blobs lists commands on revisions with a file of 1.5 GiB of zeros.
func blobs(repository string) []other {
	row := func(name, branch string, checkOut bool, line string, exit int, want, prints string) other {
		return other{row{name: name, make: cloned(repository, branch, checkOut), dir: true, exit: exit, want: want, stdout: prints}, words(line)}
	}
	const (
		commits  = "diff --base HEAD~1 --head HEAD --path cluster"
		workTree = "diff --base HEAD~1 --path cluster"
		validate = "validate --path cluster"
		large    = "cluster/big.yaml: the file is larger than 32 MiB"
	)
	return []other{
		row("diff --base, a manifest of 1.5 GiB", "yaml", false, commits, 2, large, ""),
		row("diff --base, an unused file of 1.5 GiB", "bin", false, commits, 1, "", "ConfigMap/other created"),
		nightly(row("the same in the work tree", "bin", true, workTree, 1, "", "ConfigMap/other created")),
		nightly(row("a manifest of 1.5 GiB in the work tree", "yaml", true, workTree, 2, large, "")),
		row("validate, a manifest of 1.5 GiB", "yaml", true, validate, 2, "1 result could not be determined", large),
		nightly(row("validate, an unused file of 1.5 GiB", "bin", true, validate, 1, "1 of 1 objects validated", "")),
	}
}

const catalogHead = "apiVersion: cli.fluxcd.io/v1beta1\nkind: PluginCatalog\n"

// catalogs lists catalogs of plugins.
func catalogs() []other {
	row := func(name, text, want string) other {
		return other{row{name: name, files: map[string]string{"catalog.yaml": text}, make: commit, dir: true, want: want}, words("plugin search")}
	}
	return []other{
		row("a plugin catalog of 20 MB", catalogHead+"plugins: ["+strings.Repeat("a,", 10<<20)+"]\n", "larger than"),
		row("a plugin catalog with 4 million items", catalogHead+"plugins: ["+strings.Repeat("a,", 4_000_000)+"]\n", "the YAML has more than 2000000 nodes"),
		row("a plugin catalog of YAML aliases", catalogHead+bomb(9), "the YAML aliases expand to more than 1000000 nodes"),
		row("a plugin catalog nested 100,000 deep", catalogHead+"plugins: "+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"\n", "exceeded max depth of 10000"),
		row("a plugin whose name is a path", catalogHead+"plugins: [{name: ../../bin/x}]\n", "must consist of lower-case letters"),
		row("a plugin whose name controls the terminal", catalogHead+"plugins: [{name: \"\\x1b[2J\"}]\n", "must consist of lower-case letters"),
	}
}
