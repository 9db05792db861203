// Package arch_test checks the architecture: the direction of imports, and which
// files may use the streams, the environment, the clock and the exit code.
package arch_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

const module = "github.com/fluxkit/flux/"

// layers are the import layers from top to bottom: a package may import packages of
// lower layers, and those of its own layer only as listed in allowed.
var layers = []string{"cmd/flux", "internal/cli", "pkg", "internal", "pkg/controllers"}

// allowed are the imports between packages of one layer, and from internal packages
// to pkg.
var allowed = map[string][]string{
	"pkg/build/desired":          {"pkg/build", "pkg/build/generator"},
	"pkg/diff":                   {"pkg/build"},
	"pkg/diff/compare":           {"pkg/build", "pkg/build/desired", "pkg/diff"},
	"pkg/build/generator":        {"pkg/build"},
	"pkg/build/helm":             {"pkg/build"},
	"pkg/build/isolated":         {"pkg/build"},
	"pkg/diff/render":            {"pkg/diff", "pkg/diff/review", "pkg/diff/timeline"},
	"pkg/diff/review":            {"pkg/diff"},
	"pkg/diff/timeline":          {"pkg/build", "pkg/diff", "pkg/diff/review"},
	"pkg/diff/publish":           {"pkg/bootstrap/githost", "pkg/diff", "pkg/diff/render"},
	"pkg/diff/revision":          {"pkg/build", "pkg/build/generator", "pkg/diff", "pkg/diff/timeline"},
	"internal/gitsource":         {"internal/gitrepo", "internal/sshkey", "internal/snapshot"},
	"pkg/diagnose":               {"pkg/tree", "pkg/build", "pkg/diff"},
	"pkg/record":                 {"pkg/build", "pkg/diagnose"},
	"internal/sops/decrypt":      {"internal/sops"},
	"internal/cloud/login":       {"internal/cloud"},
	"internal/cloud/bucket":      {"internal/cloud", "internal/cloud/login"},
	"internal/registry":          {"internal/cloud"},
	"pkg/bootstrap":              {"pkg/build", "pkg/diagnose", "pkg/reconcile"},
	"pkg/diff/verify":            {"pkg/diff"},
	"pkg/diff/revision/clone":    {"pkg/build", "pkg/diff/revision"},
	"pkg/validate":               {"pkg/build", "pkg/diff", "pkg/diff/revision"},
	"pkg/validate/schema":        {"pkg/validate/verdict"},
	"pkg/validate/server":        {"pkg/validate/verdict"},
	"pkg/rehearse":               {"pkg/build", "pkg/diagnose", "pkg/diff", "pkg/testrun"},
	"pkg/testrun":                {"pkg/build", "pkg/diagnose", "pkg/diff", "pkg/diff/timeline"},
	"pkg/testrun/vendored":       {"pkg/build", "pkg/build/desired", "pkg/build/generator", "pkg/testrun"},
	"pkg/testrun/assert":         {"pkg/diagnose", "pkg/testrun/expression", "pkg/testrun/fault"},
	"pkg/testrun/expression/cel": {"pkg/testrun/expression"},
	"internal/sandbox":           {"internal/gitrepo"},
	"internal/sandboxrelease":    {"internal/registry", "internal/sigstore"},
	"internal/sigstore/verifier": {"internal/sigstore"},
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "sandbox/") || strings.HasPrefix(path, "test/") {
			return
		}
		from := filepath.ToSlash(filepath.Dir(path))
		for _, spec := range file.Imports {
			to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours || to == "manifests" || mayImport(from, to) {
				continue
			}
			t.Errorf("%s imports %s, which is not below it", path, to)
		}
	})
}

func mayImport(from, to string) bool {
	if strings.HasPrefix(to, from+"/") {
		return true
	}
	for _, exception := range allowed[from] {
		if to == exception {
			return true
		}
	}
	if strings.HasPrefix(from, commands) && strings.HasPrefix(to, commands) {
		return true // TestCommandsAreApart checks these imports
	}
	if layer(from) == layer(to) {
		return strings.HasPrefix(from, "internal/") && small(to)
	}
	return layer(from) < layer(to)
}

// small reports whether any internal package may import the one with the name, which has a single purpose.
func small(name string) bool {
	return contains([]string{
		"internal/printable", "internal/redact", "internal/fold", "internal/output", "internal/kube", "internal/workspace",
		"internal/budget", "internal/clienttls", "internal/helper", "internal/hint", "internal/download", "internal/spelling",
	}, name)
}

func layer(name string) int {
	best, length := -1, -1
	for i, l := range layers {
		if (name == l || strings.HasPrefix(name, l+"/")) && len(l) > length {
			best, length = i, len(l)
		}
	}
	return best
}

// processFiles are the only files that may use what a test cannot replace.
var processFiles = map[string][]string{
	"os.Exit":   {"cmd/flux/main.go", "cmd/flux-helper/main.go"},
	"os.Stdout": {"cmd/flux/main.go", "cmd/flux-helper/main.go"},
	"os.Stderr": {"cmd/flux/main.go", "cmd/flux-helper/main.go"},
	"os.Stdin":  {"cmd/flux/main.go", "cmd/flux-helper/main.go"},
	"os.Getenv": {"cmd/flux/main.go", "cmd/flux-helper/main.go"},
	"time.Now":  {"cmd/flux/main.go"},
}

func TestProcessState(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "sandbox/") || strings.HasPrefix(path, "test/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := selector.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := x.Name + "." + selector.Sel.Name
			if allowedIn, restricted := processFiles[name]; restricted && !contains(allowedIn, path) {
				t.Errorf("%s uses %s: only %s may use it", path, name, strings.Join(allowedIn, ", "))
			}
			return true
		})
	})
}

func TestPackageNames(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, file *ast.File) {
		for _, name := range []string{"util", "utils", "common", "helpers", "shared", "types"} {
			if file.Name.Name == name {
				t.Errorf("%s is in package %s, which says nothing", path, name)
			}
		}
	})
}

// makesFolders are the functions for tests that create temporary folders, or start programs that do.
var makesFolders = regexp.MustCompile(`^(testcluster\.(Start|Up|Programs|NewPool)|test(githost|gitea)\.(Start|Open)\w*|gitrepo\.(Open|New|FetchRevision))$`)

// TestTemporaryFolders checks that tests that create temporary folders run in one of their own,
// which has to be empty in the end.
func TestTemporaryFolders(t *testing.T) {
	t.Parallel()
	need, have := map[string]string{}, map[string]bool{}
	eachFile(t, func(path string, file *ast.File) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				x, _ := selector.X.(*ast.Ident)
				switch name := fmt.Sprintf("%s.%s", x, selector.Sel.Name); {
				case name == "testtemp.M":
					have[folder] = true
				case makesFolders.MatchString(name):
					need[folder] = name
				}
			}
			return true
		})
	})
	for folder, name := range need {
		if !have[folder] {
			t.Errorf("%s uses %s: its TestMain must run testtemp.M", folder, name)
		}
	}
	if len(need) < 10 {
		t.Errorf("only %d packages use temporary folders: %v", len(need), need)
	}
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

func eachFile(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	root := testcluster.Root()
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "bin" || name == ".git" || name == "testdata" || name == "docs" || name == "tools" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		seen++
		visit(filepath.ToSlash(relative), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d files found in %s", seen, root)
	}
}
