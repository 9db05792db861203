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
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

const module = "github.com/fluxkit/flux/"

// The layers, from top to bottom, and the groups of packages in each layer. A package may import packages of lower
// layers, of earlier groups in its layer, and of its own group.
var (
	// frames lists the packages below cmd/flux/internal/cli, which verbs share.
	frames = []string{
		"suggest", "clierr", "command", "app", "clusters", "complete", "diagram", "report", "kinds", "sequence", "treeview",
		"requests", "syntax", "input", "pulls", "installflags", "oci", "mapflags", "buildflags", "checks",
	}
	// engines lists the packages below pkg.
	engines = []string{
		"migrate", "logs", "reconcile", "tree", "uninstall", "build", "repository", "diff", "diagnose", "live", "record", "replay", "bootstrap", "validate", "audit",
		"testrun", "rehearse", "orphans", "rollback", "ownership",
	}
	// rooms lists the packages below internal.
	rooms = []string{
		"budget", "hint", "lazy", "cachedir", "terminal", "helper", "graphviz", "secrets", "web", "cloud", "ci", "kube", "helm", "config", "git", "registry", "githost",
		"release", "sandbox", "plugin",
	}
)

const (
	commands = "cmd/flux/internal/"
	// verb is the position of all verbs: they may not import each other.
	verb = 400
)

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "sandbox/") || strings.HasPrefix(path, "test/") {
			return
		}
		from := filepath.ToSlash(filepath.Dir(path))
		if position(from) == 0 {
			t.Errorf("%s is in no group: add %s to a list in this test", path, from)
		}
		for _, spec := range file.Imports {
			to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if ours && !mayImport(from, to) {
				t.Errorf("%s imports %s, which is not below it", path, to)
			}
		}
	})
}

// TestImportRules checks what TestImportsPointDown allows.
func TestImportRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/flux", "cmd/flux/internal/root", true},
		{"cmd/flux/internal/root", "cmd/flux/internal/get", true},
		{"cmd/flux/internal/get", "cmd/flux/internal/cli/kinds", true},
		{"cmd/flux/internal/cli/report", "cmd/flux/internal/cli/kinds", false},
		{"cmd/flux/internal/cli/kinds", "cmd/flux/internal/get", false},
		{"cmd/flux/internal/get", "cmd/flux/internal/root", false},
		{"cmd/flux/internal/get", "cmd/flux/internal/why", false},
		{"cmd/flux/internal/create", "cmd/flux/internal/create/source", true},
		{"pkg/diff", "cmd/flux/internal/cli/app", false},
		{"pkg/diff", "pkg/build", true},
		{"pkg/build", "pkg/diff", false},
		{"pkg/diff/render", "pkg/diff/review", true},
		{"internal/kube", "pkg/diff", false},
		{"internal/kube", "pkg/controllers", true},
		{"pkg/controllers", "internal/budget", false},
		{"internal/web/egress", "internal/kube", false},
	} {
		if got := mayImport(c.from, c.to); got != c.want {
			t.Errorf("%s imports %s: %t, want %t", c.from, c.to, got, c.want)
		}
	}
}

func mayImport(from, to string) bool {
	return position(to) < position(from) || room(from) == room(to)
}

// room returns the directory of a group of packages that may import each other.
func room(name string) string {
	parts := strings.Split(name, "/")
	depth := 2
	switch {
	case strings.HasPrefix(name, commands+"cli/"):
		depth = 5
	case strings.HasPrefix(name, commands):
		depth = 4
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

// position returns the position of a package, counted from the lowest layer, or 0 if it is in no group.
func position(name string) int {
	for _, floor := range []struct {
		prefix string
		rooms  []string
		height int
	}{{commands + "cli/", frames, 300}, {"pkg/", engines, 200}, {"internal/", rooms, 100}} {
		if rest, ok := strings.CutPrefix(name, floor.prefix); ok && name != "pkg/controllers" {
			top, _, _ := strings.Cut(rest, "/")
			if i := slices.Index(floor.rooms, top); i >= 0 {
				return floor.height + i
			}
			return 0
		}
	}
	switch {
	case name == "pkg/controllers":
		return 1
	case name == "manifests":
		return 199
	case name == commands+"root":
		return verb + 1
	case strings.HasPrefix(name, commands):
		return verb
	case strings.HasPrefix(name, "cmd/"):
		return verb + 2
	}
	return 0
}

// processFiles lists the only files that may use the streams, environment, clock and exit code of the process.
var processFiles = map[string][]string{
	"os.Exit":   {"cmd/flux/main.go", "cmd/flux-helper/main.go", "cmd/flux/flux-ui/main.go", "cmd/flux/manual/main.go"},
	"os.Stdout": {"cmd/flux/main.go", "cmd/flux-helper/main.go", "cmd/flux/flux-ui/main.go"},
	"os.Stderr": {"cmd/flux/main.go", "cmd/flux-helper/main.go", "cmd/flux/flux-ui/main.go", "cmd/flux/manual/main.go"},
	"os.Stdin":  {"cmd/flux/main.go", "cmd/flux-helper/main.go", "cmd/flux/flux-ui/main.go"},
	"os.Getenv": {"cmd/flux/main.go", "cmd/flux-helper/main.go", "cmd/flux/flux-ui/main.go"},
	"time.Now":  {"cmd/flux/main.go", "cmd/flux/flux-ui/main.go", "cmd/flux/manual/main.go"},
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
			if allowedIn, restricted := processFiles[name]; restricted && !slices.Contains(allowedIn, path) {
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

// makesFolders lists the functions for tests that create temporary directories, or start programs that do.
var makesFolders = regexp.MustCompile(`^(testcluster\.(Start|Up|Programs|NewPool)|test(githost|gitea)\.(Start|Open)\w*|remote\.(Open|New))$`)

// TestTemporaryFolders checks that tests that create temporary directories run in a separate one, which must be
// empty at the end.
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
		t.Errorf("only %d packages use temporary directories: %v", len(need), need)
	}
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
