package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git"
)

const (
	// large is the size of a file that must not be read, hashed the size of one that is hashed as a
	// stream.
	large  = budget.TreeFile + 1
	hashed = 3 << 20
)

// zeros returns a reader of n zeros.
func zeros(n int64) io.Reader { return io.LimitReader(endless{}, n) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// run runs git in a folder and returns its output.
func run(t *testing.T, folder string, input io.Reader, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0"}, arguments...)...)
	cmd.Stdin = input
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", arguments, err, problems.String())
	}
	return strings.TrimSpace(string(out))
}

// imported returns a clone whose pack has a large file, and a small one as a delta of it.
func imported(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	run(t, folder, nil, "init", "-q", "-b", "main")
	const small = 1 << 20
	stream := io.MultiReader(
		strings.NewReader(fmt.Sprintf("blob\nmark :1\ndata %d\n", int64(large))), zeros(large),
		strings.NewReader(fmt.Sprintf("\nblob\nmark :2\ndata %d\n", small)), zeros(small),
		strings.NewReader("\ncommit refs/heads/main\ncommitter a <a@example.com> 1 +0000\ndata 1\nx\nM 100644 :1 large\nM 100644 :2 delta\nM 100644 inline fine\ndata 2\nx\n\n"),
	)
	run(t, folder, stream, "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet")
	return folder
}

// at returns the tree of HEAD.
func at(t *testing.T, folder string) fs.FS {
	t.Helper()
	r, err := git.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	head, err := r.Commit(git.Revision{Name: "main"})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.At(head)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestLargeObjects reads files by their declared size: in a pack, as a delta of a large one, in
// another repository, and in a file of their own.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	packed := imported(t)
	if list := run(t, packed, nil, "verify-pack", "-v", filepath.Join(".git", "objects", "pack", packName(t, packed))); !strings.Contains(list, "chain length = 1: 1 object") {
		t.Fatalf("the pack has no delta:\n%s", list)
	}
	borrowed, loose := t.TempDir(), t.TempDir()
	run(t, borrowed, nil, "clone", "-q", "--bare", "--shared", packed, ".")
	run(t, loose, nil, "init", "-q", "-b", "main")
	run(t, loose, zeros(large), "-c", "core.bigFileThreshold=2g", "hash-object", "-w", "--stdin")
	if err := os.WriteFile(filepath.Join(loose, "fine"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(loose, "large"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(loose, "large"), large); err != nil {
		t.Fatal(err)
	}
	run(t, loose, nil, "-c", "core.bigFileThreshold=2g", "add", "-A")
	run(t, loose, nil, "commit", "-qm", "x")
	for name, folder := range map[string]string{"packed": packed, "borrowed": borrowed, "loose": loose} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := at(t, folder)
			for file, size := range map[string]int64{"large": large, "delta": 1 << 20, "fine": 2} {
				if name == "loose" && file == "delta" {
					continue
				}
				if info, err := fs.Stat(tree, file); err != nil || info.Size() != size {
					t.Errorf("%s: %v, %v", file, info, err)
				}
				_, err := fs.ReadFile(tree, file)
				want := file + ": the file is larger than 128 MiB"
				if file == "fine" && err != nil || file != "fine" && (err == nil || err.Error() != want) {
					t.Errorf("%s: %v", file, err)
				}
			}
		})
	}
}

func packName(t *testing.T, folder string) string {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(folder, ".git", "objects", "pack", "*.idx"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("%q, %v", packs, err)
	}
	return filepath.Base(packs[0])
}

// TestLargeFiles compares the hash of a large file in a work tree with that of git, and reads it
// within the limit only.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	folder, _ := clone(t)
	for name, size := range map[string]int64{"hashed": hashed, "large": large} {
		write(t, folder, name, "x")
		if err := os.Truncate(filepath.Join(folder, name), size); err != nil {
			t.Fatal(err)
		}
	}
	_, work := trees(t, folder)
	for _, name := range []string{"hashed", "large", "a.yaml"} {
		hash, err := work.Hash(name)
		if want := run(t, folder, nil, "hash-object", name); hash != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, hash, err, want)
		}
	}
	if content, err := work.ReadFile("hashed"); err != nil || len(content) != hashed {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	var exceeded *budget.ExceededError
	if _, err := work.ReadFile("large"); !errors.As(err, &exceeded) || exceeded.Name != "large" {
		t.Error(err)
	}
}

// TestPackedObjects compares all objects of a repository whose packs have long chains of deltas with those that git returns.
func TestPackedObjects(t *testing.T) {
	t.Parallel()
	for name, repack := range map[string][]string{
		"one pack":       {"repack", "-q", "-adf", "--depth=100", "--window=50"},
		"without offset": {"-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-adf", "--depth=100"},
		"loose":          {"count-objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			run(t, folder, nil, "init", "-q", "-b", "main")
			stream, text := &strings.Builder{}, ""
			for n := range 150 {
				text += fmt.Sprintf("line %d of a file that grows\n", n*n)
				fmt.Fprintf(stream, "commit refs/heads/main\ncommitter a <a@example.com> %d +0000\ndata 1\nx\n", n+1)
				for i := range 3 {
					content := fmt.Sprintf("%s%d\n", text, i)
					fmt.Fprintf(stream, "M 100644 inline folder%d/file\ndata %d\n%s\n", i, len(content), content)
				}
			}
			limit := "0"
			if name == "loose" {
				limit = "100000"
			}
			run(t, folder, strings.NewReader(stream.String()), "-c", "fastimport.unpackLimit="+limit, "fast-import", "--quiet")
			run(t, folder, nil, repack...)
			objects := git.NewObjects(filesystem.NewStorage(osfs.New(filepath.Join(folder, ".git")), cache.NewObjectLRUDefault()))
			list := strings.Fields(run(t, folder, nil, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
			if len(list) < 1000 {
				t.Fatalf("%d objects", len(list))
			}
			// The order of the hashes is random, so bases are read before and after the objects that use them.
			for _, name := range list {
				o, err := objects.Storer().EncodedObject(plumbing.AnyObject, plumbing.NewHash(name))
				if err != nil {
					t.Fatal(err)
				}
				reader, err := o.Reader()
				if err != nil {
					t.Fatal(err)
				}
				content, err := io.ReadAll(reader)
				if err != nil || plumbing.ComputeHash(o.Type(), content).String() != name || o.Hash().String() != name || o.Size() != int64(len(content)) {
					t.Fatalf("%s: the content is that of another object: %v", name, err)
				}
				if _, err := objects.Storer().EncodedObject(plumbing.TagObject, o.Hash()); !errors.Is(err, plumbing.ErrObjectNotFound) {
					t.Fatalf("%s is a tag: %v", name, err)
				}
			}
			if err := objects.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
