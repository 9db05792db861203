package plugin

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInstallEveryFormat(t *testing.T) {
	t.Parallel()
	program := entry{name: programName("flux-tool"), content: "#!/bin/sh\n"}
	nested := entry{name: "dist/bin/other", content: "#!/bin/sh\n"}
	readme := entry{name: "README.md", content: "read me"}
	for name, c := range map[string]struct {
		file, extract string
		data          []byte
	}{
		"tar.gz":                   {file: "t_1.tar.gz", data: gzipOf(t, tarOf(t, readme, program))},
		"tgz":                      {file: "t_1.tgz", data: gzipOf(t, tarOf(t, program, readme))},
		"tar":                      {file: "t_1.tar", data: tarOf(t, readme, program)},
		"zip":                      {file: "t_1.zip", data: zipOf(t, readme, program)},
		"dot before the name":      {file: "t.tar.gz", data: gzipOf(t, tarOf(t, entry{name: "./" + program.name, content: program.content}))},
		"in a folder":              {file: "t.tar.gz", data: gzipOf(t, tarOf(t, readme, entry{name: "tool_1/" + program.name, content: program.content}))},
		"path in a tar.gz":         {file: "t.tar.gz", extract: "dist/bin/other", data: gzipOf(t, tarOf(t, readme, nested))},
		"path in a zip":            {file: "t.zip", extract: "/dist/bin/other", data: zipOf(t, readme, nested)},
		"program":                  {file: "t_linux_amd64", data: []byte(program.content)},
		"tar.gz without an ending": {file: "download", data: gzipOf(t, tarOf(t, program))},
		"tar without an ending":    {file: "download", data: tarOf(t, program)},
		"zip without an ending":    {file: "download", data: zipOf(t, program)},
		"other things before it":   {file: "t.tar.gz", data: gzipOf(t, tarOf(t, entry{name: "../../evil", content: "x"}, entry{name: "a", link: "/etc/passwd"}, program))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			r := s.offer(t, "1.0.0", c.file, c.data)
			m := Manifest{Name: "tool", Bin: "flux-tool", Versions: []Version{{"1.0.0", []Platform{r.Platform}}}}
			m.Versions[0].Platforms[0].ExtractPath = c.extract
			r, err := m.Release("")
			must(t, err)
			must(t, s.install(t, r))
			s.holds(t, map[string]string{fileName("tool"): program.content, "flux-tool.yaml": "1.0.0"})
			info, err := os.Stat(filepath.Join(s.folder.Path, fileName("tool")))
			must(t, err)
			if info.Mode().Perm() != 0o755 {
				t.Errorf("mode %o", info.Mode().Perm())
			}
		})
	}
}

// TestInstallRefuses checks that the folder does not change if a download is invalid.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	program := entry{name: programName("flux-tool"), content: "evil"}
	huge := make([]entry, entriesMax+1)
	for i := range huge {
		huge[i] = entry{name: "a"}
	}
	for name, c := range map[string]struct {
		file    string
		data    []byte
		problem string
	}{
		"no such file":               {"t.tar.gz", gzipOf(t, tarOf(t, entry{name: "other"})), "not found in the archive"},
		"link in a folder":           {"t.tar.gz", gzipOf(t, tarOf(t, entry{name: "bin/" + program.name, link: "x"})), "not a regular file"},
		"link in a tar":              {"t.tar.gz", gzipOf(t, tarOf(t, entry{name: program.name, link: "/bin/sh"})), "not a regular file"},
		"link in a zip":              {"t.zip", zipOf(t, entry{name: program.name, link: "/bin/sh"}), "not a regular file"},
		"folder":                     {"t.tar", tarOf(t, entry{name: program.name, mode: fs.ModeDir}), "not a regular file"},
		"another path":               {"x.tar.gz", gzipOf(t, tarOf(t, entry{name: "bin/x" + program.name, content: "x"})), "not found in the archive"},
		"empty program":              {"t.tar.gz", gzipOf(t, tarOf(t, entry{name: program.name})), "is empty"},
		"empty download":             {"t", nil, "is empty"},
		"no archive":                 {"t.tar.gz", []byte("<html>"), "unpacking the archive"},
		"no zip":                     {"t.zip", []byte("PK\x03\x04<html>"), "unpacking the archive"},
		"cut off":                    {"t.tar.gz", gzipOf(t, tarOf(t, program))[:60], "unpacking the archive"},
		"too many entries":           {"t.tar.gz", gzipOf(t, tarOf(t, huge...)), "more than 10000 entries"},
		"outside, with the name":     {"t.tar.gz", gzipOf(t, tarOf(t, entry{name: "../" + program.name, content: "x"})), "not found in the archive"},
		"absolute, with the name":    {"t.tar.gz", gzipOf(t, tarOf(t, entry{name: "/" + program.name, content: "x"})), "not found in the archive"},
		"outside, in a zip":          {"t.zip", zipOf(t, entry{name: "../" + program.name, content: "x"}), "not found in the archive"},
		"other separators, in a zip": {"t.zip", zipOf(t, entry{name: `..\` + program.name, content: "x"}), "not found in the archive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			must(t, s.install(t, s.offer(t, "1.0.0", "good", []byte("good"))))
			err := s.install(t, s.offer(t, "2.0.0", c.file, c.data))
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("got %v, want %q", err, c.problem)
			}
			s.holds(t, map[string]string{fileName("tool"): "good", "flux-tool.yaml": "1.0.0"})
		})
	}
}

func TestInstallChecksBeforeItUnpacks(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.offer(t, "1.0.0", "t.tar.gz", []byte("no archive"))
	r.Platform.Checksum = sumOf([]byte("another"))
	if err := s.install(t, r); err == nil || !strings.HasSuffix(err.Error(), "got "+sumOf([]byte("no archive"))) {
		t.Errorf("got %v", err)
	}
	s.holds(t, map[string]string{})
}

func TestInstallLeavesForeignPrograms(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"file":        func(path string) error { return os.WriteFile(path, []byte("mine"), 0o755) },
		"broken link": func(path string) error { return os.Symlink("nowhere", path) },
		"folder":      func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			path := filepath.Join(s.folder.Path, fileName("tool"))
			must(t, os.MkdirAll(s.folder.Path, 0o755))
			must(t, put(path))
			before, err := os.Lstat(path)
			must(t, err)
			if err := s.install(t, s.offer(t, "1.0.0", "t", []byte("new"))); err == nil || !strings.Contains(err.Error(), "was not installed by flux plugin install") {
				t.Errorf("install: %v", err)
			}
			if err := s.folder.Uninstall("tool"); err == nil || !strings.Contains(err.Error(), "was not installed by flux plugin install") {
				t.Errorf("uninstall: %v", err)
			}
			after, err := os.Lstat(path)
			must(t, err)
			if !os.SameFile(before, after) {
				t.Error("it was replaced")
			}
		})
	}
}

// TestUninstallTrustsNoReceipt checks that a receipt cannot make uninstall remove other files.
func TestUninstallTrustsNoReceipt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	must(t, s.install(t, s.offer(t, "1.0.0", "t", []byte("tool"))))
	must(t, os.WriteFile(filepath.Join(s.folder.Path, "flux-other.yaml"), []byte("name: ../../victim\nversion: 1.0.0\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(s.folder.Path, "flux-other"), []byte("other"), 0o755))
	if err := s.folder.Uninstall("other"); err == nil || !strings.Contains(err.Error(), "was not installed by flux plugin install") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"../tool", "nothing", "", "."} {
		if err := s.folder.Uninstall(name); err == nil || !strings.Contains(err.Error(), "is not installed in") {
			t.Errorf("%q: %v", name, err)
		}
	}
	must(t, s.folder.Uninstall("tool"))
	must(t, os.Remove(filepath.Join(s.folder.Path, "flux-other.yaml")))
	s.holds(t, map[string]string{"flux-other": "other"})
}

// TestRecovery checks that the remains of killed processes are completed or removed by the next
// one.
func TestRecovery(t *testing.T) {
	t.Parallel()
	const receipt = "name: tool\nversion: 2.0.0\ninstalledAt: \"2026-03-30T10:00:00Z\"\nplatform: {}\n"
	for name, c := range map[string]struct {
		left map[string]string
		want map[string]string
	}{
		"while it downloaded": {
			map[string]string{downloadSuffix: "x"},
			map[string]string{"flux-tool": "old", "flux-tool.yaml": "1.0.0"},
		},
		"while it wrote the receipt": {
			map[string]string{downloadSuffix: "x", programSuffix: "new", receiptSuffix: "name: to"},
			map[string]string{"flux-tool": "old", "flux-tool.yaml": "1.0.0"},
		},
		"before the program was in place": {
			map[string]string{downloadSuffix: "x", programSuffix: "new", receiptSuffix: receipt},
			map[string]string{"flux-tool": "old", "flux-tool.yaml": "1.0.0"},
		},
		"before the receipt was in place": {
			map[string]string{downloadSuffix: "x", "": "new", receiptSuffix: receipt},
			map[string]string{"flux-tool": "new", "flux-tool.yaml": "2.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			must(t, s.install(t, s.offer(t, "1.0.0", "t", []byte("old"))))
			for suffix, content := range c.left {
				path := filepath.Join(s.folder.Path, stagedPrefix+"tool"+suffix)
				if suffix == "" {
					path = filepath.Join(s.folder.Path, "flux-tool")
				}
				must(t, os.WriteFile(path, []byte(content), 0o600))
			}
			unlock, err := s.folder.lock()
			must(t, err)
			must(t, unlock())
			s.holds(t, c.want)
		})
	}
}

func TestOneProcessChangesTheFolder(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	must(t, s.install(t, s.offer(t, "1.0.0", "t", []byte("old"))))
	unlock, err := s.folder.lock()
	must(t, err)
	if err := s.install(t, s.offer(t, "2.0.0", "t", []byte("new"))); err == nil || !strings.Contains(err.Error(), "another flux plugin command") {
		t.Errorf("install: %v", err)
	}
	if err := s.folder.Uninstall("tool"); err == nil || !strings.Contains(err.Error(), "another flux plugin command") {
		t.Errorf("uninstall: %v", err)
	}
	must(t, unlock())
	must(t, s.install(t, s.offer(t, "2.0.0", "t", []byte("new"))))
	s.holds(t, map[string]string{fileName("tool"): "new", "flux-tool.yaml": "2.0.0"})
}

func TestInterruptedInstall(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.offer(t, "1.0.0", "t.tar.gz", gzipOf(t, tarOf(t, entry{name: "flux-tool", content: "x"})))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.folder.Install(ctx, s.catalog, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.holds(t, map[string]string{})
}

// TestArchiveBounds checks that reading and writing an archive is bounded.
func TestArchiveBounds(t *testing.T) {
	t.Parallel()
	if n, err := io.Copy(io.Discard, bounded(t.Context(), zeros{})); err == nil || n > programMax {
		t.Errorf("%d bytes, %v", n, err)
	}
	var names []entry
	for range directoryMax/(1<<12) + 100 {
		names = append(names, entry{name: strings.Repeat("n", 1<<12)})
	}
	s := newShelf(t)
	err := s.install(t, s.offer(t, "1.0.0", "t.zip", zipOf(t, names...)))
	if err == nil || !strings.Contains(err.Error(), "zip directory is larger than 4 MiB") {
		t.Errorf("got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
