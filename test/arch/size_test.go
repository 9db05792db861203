package arch_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

const (
	mainFiles    = 5
	packageLines = 1500
	typeMethods  = 25
	// functionLines does not include the texts of a function, such as help.
	functionLines = 70
)

// TestSizes limits the number of files of cmd/flux, the lines of each command
// package and of each function, and the methods of each type.
func TestSizes(t *testing.T) {
	t.Parallel()
	root := testcluster.Root()
	files := 0
	lines, methods := map[string]int{}, map[string]int{}
	eachFile(t, func(path string, file *ast.File) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if dir == "cmd/flux" {
			files++
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for name, n := range functionSizes(t, filepath.Join(root, path)) {
			if n > functionLines {
				t.Errorf("%s: %s has %d lines, at most %d are allowed: split it", path, name, n, functionLines)
			}
		}
		if strings.HasPrefix(dir, commands) {
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			lines[dir] += bytes.Count(text, []byte("\n"))
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[dir+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	})
	if files > mainFiles {
		t.Errorf("cmd/flux has %d files, at most %d are allowed: move what is not about the process to %s", files, mainFiles, commands)
	}
	for dir, n := range lines {
		if n > packageLines {
			t.Errorf("%s has %d lines, at most %d are allowed: split it", dir, n, packageLines)
		}
	}
	for name, n := range methods {
		if n > typeMethods {
			t.Errorf("%s has %d methods, at most %d are allowed: split it", name, n, typeMethods)
		}
	}
}

// functionSizes returns the line counts of the functions in a file, excluding string literals.
func functionSizes(t *testing.T, path string) map[string]int {
	t.Helper()
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := positions.Position(f.End()).Line - positions.Position(f.Pos()).Line + 1
		ast.Inspect(f, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok {
				n -= strings.Count(literal.Value, "\n")
			}
			return true
		})
		sizes[f.Name.Name] = max(n, sizes[f.Name.Name])
	}
	return sizes
}

// receiver returns the name of the type of a method.
func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
