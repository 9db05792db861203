package arch_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// stamp contains the values that the build sets in flux.
var stamp = map[string]string{"VERSION": "1.2.3", "COMMIT": "0123456789abcdef0123456789abcdef01234567", "DATE": "2026-01-02T03:04:05Z"}

// TestReleaseBuildsWhatMakeBuilds compares the build flags of goreleaser.yaml and the
// Makefile: with the same toolchain, equal flags produce equal binaries.
func TestReleaseBuildsWhatMakeBuilds(t *testing.T) {
	t.Parallel()
	var release struct {
		Builds []struct {
			Main, Binary        string
			Env, Flags, Ldflags []string
		}
	}
	content, err := os.ReadFile(filepath.Join("..", "..", "goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &release); err != nil {
		t.Fatal(err)
	}
	templates := strings.NewReplacer("{{ .Version }}", stamp["VERSION"], "{{ .FullCommit }}", stamp["COMMIT"], "{{ .CommitDate }}", stamp["DATE"])
	released := map[string]string{}
	for _, b := range release.Builds {
		released[b.Main] = templates.Replace(strings.Join(b.Ldflags, " "))
		if diff := cmp.Diff([]string{"-trimpath", "-buildvcs=false"}, b.Flags); diff != "" {
			t.Errorf("%s: flags (-GOFLAGS of the Makefile +goreleaser.yaml):\n%s", b.Binary, diff)
		}
		if diff := cmp.Diff([]string{"CGO_ENABLED=0"}, b.Env); diff != "" {
			t.Errorf("%s: environment (-Makefile +goreleaser.yaml):\n%s", b.Binary, diff)
		}
	}
	if diff := cmp.Diff(buildCommands(t), released); diff != "" {
		t.Errorf("-ldflags (-Makefile +goreleaser.yaml):\n%s", diff)
	}
}

// TestArchivesHaveOneProgram checks that goreleaser counts one program in each archive. It rejects other archives for
// krew, but only when it builds a release. The helper is added to the archives as a file.
func TestArchivesHaveOneProgram(t *testing.T) {
	t.Parallel()
	var release struct {
		Archives []struct {
			ID    string
			IDs   []string
			Files []struct{ Src string }
		}
		Krews []struct{ IDs []string }
	}
	content, err := os.ReadFile(filepath.Join("..", "..", "goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &release); err != nil {
		t.Fatal(err)
	}
	if len(release.Archives) != 1 || len(release.Krews) != 1 || len(release.Archives[0].Files) == 0 {
		t.Fatalf("%+v", release)
	}
	archive := release.Archives[0]
	if diff := cmp.Diff([]string{"flux"}, archive.IDs); diff != "" {
		t.Errorf("builds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{archive.ID}, release.Krews[0].IDs); diff != "" {
		t.Errorf("archives of krew (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(archive.Files[0].Src, "dist/flux-helper_") {
		t.Errorf("the first file is %s, want the helper", archive.Files[0].Src)
	}
}

// TestVersionOfABuild builds flux like `make build` and checks its version.
func TestVersionOfABuild(t *testing.T) {
	t.Parallel()
	flux := filepath.Join(t.TempDir(), "flux")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", buildCommands(t)["./cmd/flux"], "-o", flux, "./cmd/flux")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false") // the flags of the Makefile
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), flux, "version", "--client", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"flux": "v" + stamp["VERSION"], "commit": stamp["COMMIT"], "date": stamp["DATE"], "go": runtime.Version()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("version (-want +got):\n%s", diff)
	}
	// text/template calls methods by name: with it, the linker keeps all exported methods of all types, which is 11 MB.
	if program, err := os.ReadFile(flux); err != nil || bytes.Contains(program, []byte("text/template.(*state).evalField")) {
		t.Errorf("flux executes templates (%v): run them in flux-helper, see internal/helper/gotemplate", err)
	}
	out, err = exec.CommandContext(t.Context(), flux, "version", "--client").Output()
	if want := "flux: v" + stamp["VERSION"] + "\n"; err != nil || string(out) != want {
		t.Errorf("version is %q, %v; want %q", out, err, want)
	}
}

// buildCommands returns the -ldflags of the builds in `make build`, by package.
func buildCommands(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", "-n", "build")
	for name, value := range stamp {
		cmd.Args = append(cmd.Args, name+"="+value)
	}
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if _, flags, ok := strings.Cut(line, "go build -ldflags '"); ok {
			ldflags, rest, _ := strings.Cut(flags, "'")
			words := strings.Fields(rest)
			commands[words[len(words)-1]] = ldflags
		}
	}
	if len(commands) != 3 {
		t.Fatalf("make build runs %d builds, want 3:\n%s", len(commands), out)
	}
	return commands
}
