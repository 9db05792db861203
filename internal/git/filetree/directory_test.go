//go:build unix

package filetree_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/fluxkit/flux/internal/git/filetree"
)

// hostile makes a folder with two files in it and every kind of entry that must
// not be read. The links lead to a secret beside the folder, to a file inside
// of it, and to a device that never ends.
func hostile(t *testing.T) string {
	t.Helper()
	outside := t.TempDir()
	root := filepath.Join(outside, "tree")
	for name, content := range map[string]string{
		"secret": "token", "tree/app/config.yaml": "a: b", "tree/top.yaml": "c: d",
	} {
		file := filepath.Join(outside, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"absolute": filepath.Join(outside, "secret"), "relative": "../secret", "inner": "top.yaml", "folder": "app", "up": "..", "app/zero": "/dev/zero",
		"dangling": "nowhere", "self": "self",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(root, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return root
}

func TestFolderHasFilesAndDirectories(t *testing.T) {
	t.Parallel()
	files := filetree.Directory(hostile(t))
	if err := fstest.TestFS(files, "top.yaml", "app/config.yaml"); err != nil {
		t.Error(err)
	}
	var found []string
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		found = append(found, name)
		return err
	})
	if want := 4; err != nil || len(found) != want {
		t.Errorf("the tree has %q (%v), want %d entries", found, err, want)
	}
}

func TestFolderHasNothingElse(t *testing.T) {
	t.Parallel()
	files := filetree.Directory(hostile(t))
	for _, name := range []string{
		"absolute", "relative", "inner", "folder", "folder/config.yaml", "up/secret", "app/zero", "dangling", "self", "pipe", "socket", "app/zero/more",
	} {
		for op, try := range map[string]func() error{
			"Open":     func() error { _, err := files.Open(name); return err },
			"Stat":     func() error { _, err := fs.Stat(files, name); return err },
			"ReadFile": func() error { _, err := fs.ReadFile(files, name); return err },
			"ReadDir":  func() error { _, err := fs.ReadDir(files, name); return err },
		} {
			if err := try(); !errors.Is(err, filetree.ErrSpecial) || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of %s gives %v, want ErrSpecial", op, name, err)
			}
		}
	}
	for _, name := range []string{"../secret", "/etc/passwd", "app/../../secret", "top.yaml/x", "gone", "gone/deep"} {
		if text, err := fs.ReadFile(files, name); err == nil || errors.Is(err, filetree.ErrSpecial) {
			t.Errorf("ReadFile of %s gives %q, %v", name, text, err)
		}
	}
}

// TestFolderBehindLink checks that the root is what the user names, and may be a link.
func TestFolderBehindLink(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(hostile(t), link); err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(filetree.Directory(link), "app/config.yaml"); err != nil || string(text) != "a: b" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := fs.ReadFile(filetree.Directory(link+"-gone"), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that does not exist gives %v", err)
	}
}
