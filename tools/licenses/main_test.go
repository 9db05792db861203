package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCopyTerms(t *testing.T) {
	source, folder := t.TempDir(), filepath.Join(t.TempDir(), "m@v1")
	for _, name := range []string{"LICENSE", "NOTICE.txt", "copying.md", "license.go", "README.md"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte("text of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyTerms(module{Path: "m", Version: "v1", Dir: source}, folder); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff([]string{"LICENSE", "NOTICE.txt", "copying.md"}, got); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}
}

func TestCopyTermsWithoutLicense(t *testing.T) {
	for _, readme := range []string{"", "# m\n\nSee the license of n.\n"} {
		source := t.TempDir()
		if readme != "" {
			if err := os.WriteFile(filepath.Join(source, "README.md"), []byte(readme), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := copyTerms(module{Path: "example.com/m", Version: "v1", Dir: source}, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "example.com/m@v1: no license in its root") {
			t.Errorf("err = %v, want one that names the module", err)
		}
	}
}

func TestCopyTermsInReadme(t *testing.T) {
	source, folder := t.TempDir(), t.TempDir()
	text := "# m\n\n## License\n\nApache-2.0\n"
	if err := os.WriteFile(filepath.Join(source, "README.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copyTerms(module{Path: "m", Version: "v1", Dir: source}, folder); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "README.md")); err != nil || string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
}

// TestDependencies lists the modules of this package, which imports only the
// standard library: cobra is not imported, and go-cmp only by tests.
func TestDependencies(t *testing.T) {
	modules, err := dependencies([]string{"."})
	if err != nil || len(modules) > 0 {
		t.Errorf("modules = %v, %v; want none", modules, err)
	}
	modules, err = dependencies([]string{"../../internal/terminal/ui"})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range modules {
		found = found || m.Path == "github.com/fatih/color" && m.Version != "" && m.Dir != ""
	}
	if !found {
		t.Errorf("modules of internal/terminal/ui = %v, want github.com/fatih/color among them", modules)
	}
}
