package plugin

import (
	"errors"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

const (
	sumA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	sumB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	sumC = "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

// platformYAML returns a platform of a manifest.
func platformYAML(os, arch, checksum string) string {
	return "{os: " + os + ", arch: " + arch + ", url: \"https://example.com/t.tar.gz\", checksum: \"" + checksum + "\"}"
}

func here(checksum string) string { return platformYAML(runtime.GOOS, runtime.GOARCH, checksum) }

const head = "apiVersion: cli.fluxcd.io/v1beta1\nkind: Plugin\nname: tool\ndescription: A tool\nbin: flux-tool\nversions:\n"

func manifestOf(t *testing.T, versions ...string) *Manifest {
	t.Helper()
	text := head
	for _, v := range versions {
		number, platforms, _ := strings.Cut(v, " ")
		text += "- version: " + number + "\n  platforms: [" + platforms + "]\n"
	}
	m, err := parseManifest([]byte(text), "tool")
	must(t, err)
	return m
}

func TestRelease(t *testing.T) {
	t.Parallel()
	other := platformYAML("plan9", "mips", sumC)
	m := manifestOf(t, "1.9.0 "+here(sumA), "2.0.0-rc.1 "+here(sumC), "1.10.0 "+here(sumB), "1.0.0 "+other)
	for ref, want := range map[string]string{
		"": "1.10.0", "1.9.0": "1.9.0", "v1.9.0": "1.9.0", "2.0.0-rc.1": "2.0.0-rc.1", sumA: "1.9.0", sumB: "1.10.0",
	} {
		r, err := m.Release(ref)
		if err != nil || r.Version != want {
			t.Errorf("%q: %+v, %v, want %s", ref, r, err, want)
		}
	}
	var remedy *hint.Error
	if _, err := m.Release("1.0.0"); !errors.As(err, &remedy) || remedy.Hint != "available for: plan9/mips" {
		t.Errorf("got %v", err)
	}
	m = manifestOf(t, "1.0.0 "+other)
	if _, err := m.Release(sumC); err == nil || !strings.HasPrefix(err.Error(), "digest "+sumC+" belongs to ") {
		t.Errorf("got %v", err)
	}
	for _, ref := range []string{"1.0", "9.9.9", "../1.0.0", sumA, "latest"} {
		if _, err := m.Release(ref); err == nil || !strings.Contains(err.Error(), "has no version "+strconv.Quote(ref)) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := manifestOf(t).Release(""); err == nil || !strings.HasSuffix(err.Error(), "has no versions") {
		t.Errorf("no versions: %v", err)
	}
	only := manifestOf(t, "1.0.0-beta.1 "+here(sumA), "1.0.0-beta.2 "+here(sumB))
	if r, err := only.Release(""); err != nil || r.Version != "1.0.0-beta.2" {
		t.Errorf("pre-releases alone: %v, %v", r, err)
	}
}

func TestInvalidManifests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, problem string }{
		"no YAML":          {"a: b: c", "invalid YAML"},
		"a page":           {"<!DOCTYPE html><html></html>", "invalid YAML"},
		"another version":  {strings.Replace(head, "v1beta1", "v2", 1), "apiVersion"},
		"another kind":     {strings.Replace(head, "kind: Plugin", "kind: PluginCatalog", 1), "kind"},
		"another name":     {strings.Replace(head, "name: tool", "name: tools", 1), `must be "tool"`},
		"path in bin":      {strings.Replace(head, "bin: flux-tool", "bin: ../flux-tool", 1), "bin"},
		"no bin":           {strings.Replace(head, "bin: flux-tool", "", 1), "bin"},
		"aliases":          {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nversions: [*c,*c,*c]\n", "invalid YAML"},
		"control in error": {"apiVersion: \"\\u001b[2J\"", `\x1b[2J`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseManifest([]byte(c.text), "tool")
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Fatalf("got %v, want %q", err, c.problem)
			}
			if strings.ContainsRune(err.Error(), '\x1b') {
				t.Errorf("%q controls the terminal", err)
			}
		})
	}
	for _, bad := range []string{"sha256:xyz", "md5:aaaa", "", sumA[:70], strings.ToUpper(sumA)} {
		if r, err := manifestOf(t, "1.0.0 "+here(bad)).Release(""); err == nil {
			t.Errorf("checksum %q is accepted: %v", bad, r)
		}
	}
	m := manifestOf(t, "1.0.0 "+here(sumA))
	for _, bad := range []string{"..", "../x", "a/../../x", "/", "/.."} {
		m.Versions[0].Platforms[0].ExtractPath = bad
		if r, err := m.Release(""); err == nil {
			t.Errorf("extractPath %q is accepted: %v", bad, r)
		}
	}
	for _, ref := range []string{"", sumA, sumB} {
		m := manifestOf(t, "\"1.0.0\\e[2J\" "+here(sumA)+","+platformYAML("plan9", "mips", sumB))
		if r, err := m.Release(ref); err == nil || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q: a version that is not semantic is accepted: %v, %v", ref, r, err)
		}
	}
	var remedy *hint.Error
	if _, err := manifestOf(t, "1.0.0 "+platformYAML("\"plan9\\e[2J\"", "mips", sumB)).Release(""); !errors.As(err, &remedy) || remedy.Hint != `available for: plan9\x1b[2J/mips` {
		t.Errorf("got %v", err)
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	const start = "apiVersion: cli.fluxcd.io/v1beta1\nkind: PluginCatalog\nplugins:\n"
	index, err := parseIndex([]byte(start + "- {name: tool, description: \"A \\u001b[31mtool\\u202e\\nwith lines\", license: MIT, more: 1}\n"))
	must(t, err)
	if got := index.Plugins[0].Description; got != `A \x1b[31mtool\u202e with lines` {
		t.Errorf("description %q", got)
	}
	for _, name := range []string{"../tool", "Tool", "a b", "", "\"\\u001b\"", "-x", strings.Repeat("a", 200)} {
		if _, err := parseIndex([]byte(start + "- {name: " + name + "}\n")); err == nil {
			t.Errorf("name %q is accepted", name)
		}
	}
}

func TestParseRef(t *testing.T) {
	t.Parallel()
	for word, want := range map[string][2]string{
		"operator": {"operator", ""}, "operator@0.45.0": {"operator", "0.45.0"}, "helm-diff@" + sumA: {"helm-diff", sumA},
	} {
		name, ref, err := ParseRef(word)
		if err != nil || name != want[0] || ref != want[1] {
			t.Errorf("%q: %q, %q, %v", word, name, ref, err)
		}
	}
	for _, word := range []string{"", "@1.0.0", "operator@", "../x", "a/b", "A", "-x", `a\b`, "a\x1b"} {
		if _, _, err := ParseRef(word); err == nil {
			t.Errorf("%q is accepted", word)
		}
	}
}

// FuzzManifest checks that an accepted manifest has no path outside of the archive and no control
// characters.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(head + "- version: 1.0.0\n  platforms: [" + here(sumA) + "]\n"))
	f.Add([]byte(head + "- version: 1.0.0\n  platforms: [{os: linux, arch: amd64, extractPath: a/b, checksum: \"" + sumB + "\"}]\n"))
	f.Add([]byte(head + "- {version: 0.1}\n- {version: [a]}\n"))
	f.Add([]byte("apiVersion: cli.fluxcd.io/v1beta1\nkind: PluginCatalog\nplugins: [{name: tool, description: \"\\u001b\"}]\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := parseManifest(data, "tool"); err == nil {
			if m.Description != printable.Line(m.Description) {
				t.Errorf("description %q", m.Description)
			}
			for _, ref := range []string{"", "1.0.0", sumA, sumB} {
				r, err := m.Release(ref)
				if err != nil {
					continue
				}
				if !filepath.IsLocal(filepath.FromSlash(r.inArchive().path)) || !checksumForm().MatchString(r.Platform.Checksum) {
					t.Errorf("%+v", r)
				}
			}
		}
		if index, err := parseIndex(data); err == nil {
			for _, e := range index.Plugins {
				if !filepath.IsLocal(e.Name) || e.Description != printable.Line(e.Description) {
					t.Errorf("%+v", e)
				}
			}
		}
	})
}

// FuzzArchive checks that unpacking any archive ends, and extracts only the program.
func FuzzArchive(f *testing.F) {
	program := entry{name: "flux-tool", content: "#!/bin/sh\n"}
	f.Add(tarOf(f, program))
	f.Add(gzipOf(f, tarOf(f, entry{name: "x", link: "y"}, program)))
	f.Add(zipOf(f, entry{name: "bin/flux-tool", content: "x"}))
	f.Add(zipOf(f, entry{name: "flux-tool", link: "x"}))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, form := range []format{tarArchive, gzipArchive, zipArchive} {
			extractBytes(t, form, data)
		}
	})
}
