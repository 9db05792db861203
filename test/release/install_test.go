// Package release_test tests the contents of releases and the install script.
package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// releases serves two releases, of which 1.1.0 is the latest.
type releases struct {
	*httptest.Server
	// files lists the contents by path below /releases/download.
	files map[string][]byte
}

func serveReleases(t *testing.T) *releases {
	t.Helper()
	r := &releases{files: map[string][]byte{}}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		var checksums bytes.Buffer
		for name, programs := range map[string][]string{"flux": {"flux", "flux-helper", "flux-ui", "LICENSE"}, "flux-sandbox": {"flux-sandbox", "kubectl", "controllers/source-controller"}} {
			content := archive(t, version, programs)
			file := fmt.Sprintf("%s_%s_%s_%s.tar.gz", name, version, runtime.GOOS, runtime.GOARCH)
			r.files["v"+version+"/"+file] = content
			fmt.Fprintf(&checksums, "%x  %s\n", sha256.Sum256(content), file)
		}
		r.files["v"+version+"/flux_"+version+"_checksums.txt"] = checksums.Bytes()
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		name, download := strings.CutPrefix(request.URL.Path, "/releases/download/")
		content, ok := r.files[name]
		switch {
		case request.URL.Path == "/releases/latest":
			http.Redirect(w, request, "/releases/tag/v1.1.0", http.StatusFound)
		case request.URL.Path == "/releases/tag/v1.1.0":
		case download && ok:
			_, _ = w.Write(content) // the client reports it
		default:
			http.NotFound(w, request)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// archive returns an archive of scripts that print their name and version.
func archive(t *testing.T, version string, names []string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	w := tar.NewWriter(compressed)
	for _, name := range names {
		text := fmt.Sprintf("#!/bin/sh\necho %s %s\n", name, version)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// script is the script that installs a release.
var script = filepath.Join("..", "..", "install.sh")

// install runs install.sh and returns its output.
func (r *releases) install(t *testing.T, variables ...string) (string, error) {
	t.Helper()
	return r.run(t, script, variables...)
}

func (r *releases) run(t *testing.T, script string, variables ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", script)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "FLUX_RELEASES=" + r.URL + "/releases"}, variables...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run returns the output of an installed program.
func run(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestInstall(t *testing.T) {
	t.Parallel()
	r := serveReleases(t)
	directory := filepath.Join(t.TempDir(), "new", "bin")
	out, err := r.install(t, "FLUX_DIR="+directory)
	want := "installed flux 1.1.0 in " + directory + "\nadd it to your PATH: export PATH=\"" + directory + ":$PATH\"\n"
	if err != nil || out != want {
		t.Fatalf("%v: %s", err, out)
	}
	for _, program := range []string{"flux", "flux-helper", "flux-ui"} {
		if got := run(t, filepath.Join(directory, program)); got != program+" 1.1.0\n" {
			t.Errorf("%s prints %q", program, got)
		}
	}
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 3 {
		t.Errorf("%v %v", entries, err)
	}
	// Another version replaces it and adds the sandbox.
	for range 2 {
		out, err = r.install(t, "FLUX_DIR="+directory, "FLUX_VERSION=v1.0.0", "FLUX_SANDBOX=1")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, program := range []string{"flux", "flux-helper", "flux-ui", "flux-sandbox", "kubectl", "controllers/source-controller"} {
		if got := run(t, filepath.Join(directory, program)); got != program+" 1.0.0\n" {
			t.Errorf("%s prints %q", program, got)
		}
	}
}

// Without FLUX_DIR, a copy of the script with another default than /usr/local/bin installs there if the
// directory exists, and otherwise in the home directory.
func TestInstallWithoutDirectory(t *testing.T) {
	t.Parallel()
	r := serveReleases(t)
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	for _, exists := range []bool{true, false} {
		home, system := t.TempDir(), t.TempDir()
		want := system
		if !exists {
			system = filepath.Join(system, "none")
			want = filepath.Join(home, ".local", "bin")
		}
		changed := filepath.Join(t.TempDir(), "install.sh")
		if err := os.WriteFile(changed, bytes.ReplaceAll(text, []byte("/usr/local/bin"), []byte(system)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := r.run(t, changed, "HOME="+home); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := run(t, filepath.Join(want, "flux")); got != "flux 1.1.0\n" {
			t.Errorf("flux prints %q", got)
		}
	}
}

// Files that cannot be verified or downloaded are not installed, and the installed programs are kept.
func TestInstallFails(t *testing.T) {
	t.Parallel()
	r := serveReleases(t)
	archive := fmt.Sprintf("flux_1.0.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	r.files["v1.2.0/flux_1.2.0_checksums.txt"] = []byte("00  other.tar.gz\n")
	r.files[fmt.Sprintf("v1.2.0/flux_1.2.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)] = r.files["v1.0.0/"+archive]
	damaged := bytes.Clone(r.files["v1.1.0/"+strings.ReplaceAll(archive, "1.0.0", "1.1.0")])
	damaged[len(damaged)-1] ^= 1
	r.files["v1.1.0/"+strings.ReplaceAll(archive, "1.0.0", "1.1.0")] = damaged
	for _, c := range []struct {
		variables []string
		want      string
	}{
		{[]string{"FLUX_VERSION=1.1.0"}, "the checksum of " + strings.ReplaceAll(archive, "1.0.0", "1.1.0") + " is "},
		{[]string{"FLUX_VERSION=1.0.0", "FLUX_SHA256=11"}, ", not 11\n"},
		{[]string{"FLUX_VERSION=1.2.0"}, ", not in the release\n"},
		{[]string{"FLUX_VERSION=3.0.0"}, "cannot download " + r.URL + "/releases/download/v3.0.0/flux_3.0.0_checksums.txt\n"},
		{[]string{"FLUX_VERSION=../1.0.0"}, "invalid version '../1.0.0': set FLUX_VERSION to a release, e.g. 1.0.0\n"},
		{[]string{"FLUX_VERSION=1.0.0 x"}, "invalid version '1.0.0 x': set FLUX_VERSION to a release, e.g. 1.0.0\n"},
		{[]string{"FLUX_RELEASES=" + r.URL + "/nothing"}, "cannot read " + r.URL + "/nothing/latest: set FLUX_VERSION\n"},
	} {
		directory := t.TempDir()
		before := filepath.Join(directory, "flux")
		if err := os.WriteFile(before, []byte("#!/bin/sh\necho before\n"), 0o700); err != nil { // a program
			t.Fatal(err)
		}
		out, err := r.install(t, append(c.variables, "FLUX_DIR="+directory)...)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v: %s; want %s", c.variables, err, out, c.want)
		}
		if entries, err := os.ReadDir(directory); err != nil || len(entries) != 1 || run(t, before) != "before\n" {
			t.Errorf("%s: %v %v", c.variables, entries, err)
		}
	}
}
