package arch_test

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const commands = "internal/cli"

// shared are the packages below internal/cli that are not commands. Each may
// import those before it; commands may import all of them.
var shared = []string{
	"suggest", "clierr", "command", "app", "complete", "kinds", "report",
	"sequence", "treeview", "reconciler", "validate", "installation", "oci", "buildflags",
}

// TestCommandsAreApart refuses imports of one command by another: code that
// several commands need is in a shared package or, better, in an engine.
func TestCommandsAreApart(t *testing.T) {
	t.Parallel()
	eachFile(t, func(path string, file *ast.File) {
		from, below := strings.CutPrefix(filepath.ToSlash(filepath.Dir(path)), commands+"/")
		if !below || strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, spec := range file.Imports {
			to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+commands)
			if ours && !mayCall(from, strings.TrimPrefix(to, "/")) {
				t.Errorf("%s imports %s%s", path, commands, to)
			}
		}
	})
}

// mayCall reports whether a package below internal/cli may import another one.
// The packages in the folder of a command may import each other.
func mayCall(from, to string) bool {
	caller, callee := slices.Index(shared, from), slices.Index(shared, to)
	switch {
	case callee >= 0:
		return caller < 0 || callee < caller
	case caller >= 0 || to == "":
		return false
	}
	folder, _, _ := strings.Cut(from, "/")
	return strings.HasPrefix(to, folder+"/")
}
