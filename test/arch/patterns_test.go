package arch_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// TestPatterns compiles all regular expressions that the product compiles when they are first used.
func TestPatterns(t *testing.T) {
	t.Parallel()
	found := 0
	for _, top := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(testcluster.Root(), top), func(dir string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || !entry.IsDir():
				return err
			case entry.Name() == "testdata":
				return fs.SkipDir
			}
			files := token.NewFileSet()
			packages, err := parser.ParseDir(files, dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.SkipObjectResolution) //nolint:staticcheck // build tags do not matter
			for _, p := range packages {
				constants := stringConstants(p)
				ast.Inspect(p, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok || types.ExprString(call.Fun) != "lazy.Regexp" {
						return true
					}
					found++
					text, ok := stringOf(call.Args[0], constants)
					if !ok {
						t.Errorf("%s: the regular expression is not a constant", files.Position(call.Pos()))
					} else if _, err := regexp.Compile(text); err != nil {
						t.Errorf("%s: %v", files.Position(call.Pos()), err)
					}
					return true
				})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 50 {
		t.Errorf("only %d regular expressions were found", found)
	}
}

// stringConstants returns the values of the package's constants that are strings.
func stringConstants(p *ast.Package) map[string]ast.Expr { //nolint:staticcheck // see TestPatterns
	all := map[string]ast.Expr{}
	ast.Inspect(p, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, name := range spec.Names {
				all[name.Name] = spec.Values[i]
			}
		}
		return true
	})
	return all
}

// stringOf evaluates a string literal, a constant, or a concatenation of both.
func stringOf(e ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0)), e.Kind == token.STRING
	case *ast.Ident:
		value, ok := constants[e.Name]
		if !ok {
			return "", false
		}
		return stringOf(value, constants)
	case *ast.BinaryExpr:
		left, ok1 := stringOf(e.X, constants)
		right, ok2 := stringOf(e.Y, constants)
		return left + right, ok1 && ok2
	}
	return "", false
}
