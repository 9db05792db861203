package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place writes a program to a folder.
func place(t *testing.T, folder, name string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(folder, name)
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600))
	must(t, os.Chmod(path, mode))
	return path
}

func TestFinder(t *testing.T) {
	t.Parallel()
	folder, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	want := map[string]string{
		"a":       place(t, folder, "flux-a", 0o755),
		"b":       place(t, one, "flux-b", 0o755),
		"c_d.sh":  place(t, two, "flux-c_d.sh", 0o711),
		"linked":  filepath.Join(folder, "flux-linked"),
		"receipt": place(t, folder, "flux-receipt", 0o755),
	}
	must(t, os.Symlink(place(t, two, "other", 0o755), want["linked"]))
	must(t, os.WriteFile(filepath.Join(folder, "flux-receipt.yaml"), []byte("name: receipt\nversion: 1.2.3\n"), 0o600))
	place(t, one, "flux-a", 0o755)
	place(t, two, "flux-b", 0o755)
	place(t, folder, "flux-get", 0o755)
	place(t, one, "flux-helm", 0o755)
	place(t, folder, "flux-text", 0o644)
	place(t, folder, "other-tool", 0o755)
	place(t, folder, "flux-", 0o755)
	place(t, folder, "flux--x", 0o755)
	must(t, os.Mkdir(filepath.Join(folder, "flux-dir"), 0o755))
	must(t, os.Symlink("nowhere", filepath.Join(folder, "flux-broken")))
	place(t, filepath.Join(folder, "sub"), "flux-sub", 0o755)

	path := strings.Join([]string{one, "", ".", "relative", filepath.Join(one, "missing"), one, two, folder}, string(os.PathListSeparator))
	f := Finder{Directory: folder, Path: path, Reserved: func(name string) bool { return name == "get" || name == "helm" }}
	plugins, ignored := f.All(t.Context())
	got := map[string]string{}
	for _, p := range plugins {
		got[p.Name] = p.Path
		if (p.Receipt != nil) != (p.Name == "receipt") {
			t.Errorf("%s: receipt %v", p.Name, p.Receipt)
		}
		if found, ok := f.Find(p.Name); !ok || found.Path != p.Path {
			t.Errorf("Find(%s) = %v, %v", p.Name, found, ok)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, path := range want {
		if got[name] != path {
			t.Errorf("%s is %s, want %s", name, got[name], path)
		}
	}
	var reasons []string
	for _, i := range ignored {
		reasons = append(reasons, filepath.Base(i.Path)+": "+i.Reason)
	}
	if got, want := strings.Join(reasons, "\n"), strings.Join([]string{
		"flux-get: get is a built-in command", "flux-a: " + want["a"] + " takes precedence", "flux-b: " + want["b"] + " takes precedence",
	}, "\n"); got != want {
		t.Errorf("ignored:\n%s\nwant:\n%s", got, want)
	}
	for _, name := range []string{"get", "helm", "text", "dir", "broken", "sub", "", "-x", "../a", "sub/flux-sub", "other"} {
		if p, ok := f.Find(name); ok {
			t.Errorf("Find(%q) = %v", name, p)
		}
	}
}

func TestFinderIsBounded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	place(t, folder, "flux-a", 0o755)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := Finder{Directory: folder, Reserved: func(string) bool { return false }}
	if plugins, _ := f.All(ctx); len(plugins) != 0 {
		t.Errorf("got %v", plugins)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
		return path
	}
	for name, c := range map[string]struct{ text, want string }{
		"words":        {`echo "$1-$2"; printf 'b\tdoc\033[2J\n:4\n'; echo "Completion ended" >&2`, "__complete-x\nb\tdoc\\x1b[2J\n:4\n"},
		"none":         {"echo :0", ":0\n"},
		"fails":        {"echo a; echo :4; exit 1", ""},
		"no directive": {"echo usage", ""},
		"silent":       {"true", ""},
		"too much":     {"yes", ""},
		"no program":   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			// Write the programs before parallel tests run: a program that is open for writing cannot be executed.
			path := script("flux-"+strings.ReplaceAll(name, " ", "-"), c.text)
			t.Parallel()
			got, ok := Complete(t.Context(), path, "__complete", []string{"x"}, os.Environ())
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, c.want)
			}
		})
	}
	slow := script("flux-slow", "sleep 60 & echo started; wait")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, ok := Complete(ctx, slow, "__complete", nil, nil); ok {
		t.Errorf("got %q", got)
	}
}
