package cachedir_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/cachedir"
)

func entries(dir, version string) *cachedir.Entries {
	return &cachedir.Entries{Dir: cachedir.Dir(dir), Version: version, MaxSize: 1 << 20, Now: time.Now}
}

// only returns the only file in a directory.
func only(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, want 1: %v", len(files), err)
	}
	return filepath.Join(dir, files[0].Name())
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestEntries checks which entries are used, and that others can neither read nor write them.
func TestEntries(t *testing.T) {
	t.Parallel()
	value := []byte("apiVersion: v1\n")
	change := func(edit func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			t.Helper()
			content, err := os.ReadFile(name)
			do(t, err)
			do(t, os.WriteFile(name, edit(content), 0o600))
		}
	}
	for _, c := range []struct {
		name, version, key string
		plant              func(t *testing.T, name string)
		hit                bool
	}{
		{"the same", "v1", "a", func(*testing.T, string) {}, true},
		{"another key", "v1", "b", func(*testing.T, string) {}, false},
		{"another version", "v2", "a", func(*testing.T, string) {}, false},
		{"key and version exchanged", "a", "v1", func(*testing.T, string) {}, false},
		{"a changed byte", "v1", "a", change(func(b []byte) []byte { b[len(b)-2] ^= 1; return b }), false},
		{"a changed header", "v1", "a", change(func(b []byte) []byte { b[0] ^= 1; return b }), false},
		{"truncated", "v1", "a", change(func(b []byte) []byte { return b[:len(b)-1] }), false},
		{"a truncated header", "v1", "a", change(func(b []byte) []byte { return b[:30] }), false},
		{"empty", "v1", "a", change(func([]byte) []byte { return nil }), false},
		{"longer", "v1", "a", change(func(b []byte) []byte { return append(b, '\n') }), false},
		{"without a header", "v1", "a", change(func([]byte) []byte { return value }), false},
		{"writable by others", "v1", "a", func(t *testing.T, name string) { t.Helper(); do(t, os.Chmod(name, 0o602)) }, false},
		{"writable by the group", "v1", "a", func(t *testing.T, name string) { t.Helper(); do(t, os.Chmod(name, 0o620)) }, false},
		{"readable by others", "v1", "a", func(t *testing.T, name string) { t.Helper(); do(t, os.Chmod(name, 0o644)) }, true},
		{"a link to the same content", "v1", "a", func(t *testing.T, name string) {
			t.Helper()
			elsewhere := filepath.Join(t.TempDir(), "entry")
			do(t, os.Rename(name, elsewhere))
			do(t, os.Symlink(elsewhere, name))
		}, false},
		{"a directory", "v1", "a", func(t *testing.T, name string) { t.Helper(); do(t, os.Remove(name)); do(t, os.Mkdir(name, 0o700)) }, false},
		{"the entry of another key", "v1", "a", func(t *testing.T, name string) {
			t.Helper()
			other := t.TempDir()
			entries(other, "v1").Put("b", value)
			do(t, os.Rename(only(t, other), name))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "flux", "renderings")
			entries(dir, "v1").Put("a", value)
			name := only(t, dir)
			for path, want := range map[string]fs.FileMode{name: 0o600, dir: fs.ModeDir | 0o700, filepath.Dir(dir): fs.ModeDir | 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode() != want {
					t.Errorf("%s: mode %v, want %v: %v", path, info.Mode(), want, err)
				}
			}
			c.plant(t, name)
			got, ok := entries(dir, c.version).Get(c.key)
			if ok != c.hit || ok && !bytes.Equal(got, value) {
				t.Errorf("got %q, %v", got, ok)
			}
			entries(dir, "v1").Put("a", value) // replaces a file that is not used
			if got, ok := entries(dir, "v1").Get("a"); c.name != "a directory" && (!ok || !bytes.Equal(got, value)) {
				t.Errorf("after it was put again: %q, %v", got, ok)
			}
		})
	}
}

// TestOtherOwner checks that files of other users are not read. Only root can give files away.
func TestOtherOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	entries(dir, "v1").Put("a", []byte("x"))
	if os.Chown(only(t, dir), 12345, -1) != nil {
		return
	}
	if _, ok := entries(dir, "v1").Get("a"); ok {
		t.Error("the entry of another user is used")
	}
}

// TestUnwritable checks that a cache that cannot be written fails nothing.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	do(t, os.WriteFile(file, nil, 0o600))
	e := entries(filepath.Join(file, "renderings"), "v1")
	e.Put("a", []byte("x"))
	if _, ok := e.Get("a"); ok {
		t.Error("an entry was found")
	}
	do(t, e.Close())
}

// TestBound checks that the oldest entries are removed when the cache is closed, and that those in use are not old.
func TestBound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := entries(dir, "v1")
	e.MaxSize = 3 * 4096 // a small file takes a block
	names := map[string]string{}
	for i, key := range []string{"used", "old", "b", "c"} {
		other := t.TempDir()
		entries(other, "v1").Put(key, bytes.Repeat([]byte(key[:1]), 1000))
		names[key] = filepath.Base(only(t, other))
		e.Put(key, bytes.Repeat([]byte(key[:1]), 1000))
		at := time.Now().Add(time.Duration(i-100) * time.Hour)
		do(t, os.Chtimes(filepath.Join(dir, names[key]), at, at))
	}
	if _, ok := e.Get("used"); !ok {
		t.Fatal("no entry")
	}
	do(t, e.Close())
	for key, want := range map[string]bool{"used": true, "old": false, "b": true, "c": true} {
		if _, err := os.Stat(filepath.Join(dir, names[key])); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", key, err == nil, want)
		}
	}
	do(t, e.Close()) // nothing was put since
}
