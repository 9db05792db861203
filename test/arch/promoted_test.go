package arch_test

import (
	"go/ast"
	"maps"
	"path"
	"strings"
	"testing"
)

// mostPromoted is the maximum number of methods that a type may get from its embedded fields. More of them hide where a
// method is declared: use a named field.
const mostPromoted = 30

// unstructuredObject is the type of an object of any kind, and its number of methods.
const (
	unstructuredObject        = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured"
	unstructuredObjectMethods = 53
)

// objects lists the types that represent an object with additional data, and are used like the object.
var objects = []string{module + "pkg/build.Object", module + "pkg/build/sourcetree.Manifest", module + "pkg/diff/dryrun.item", module + "pkg/repository.applied", module + "pkg/validate.object", module + "pkg/validate.Object"}

// methodSet contains the declarations of a type or an interface.
type methodSet struct {
	own    map[string]bool
	embeds []string
}

// TestPromotedMethods limits the number of methods that a type gets from embedded types of this module, or from an
// unstructured object. Other embedded library types have few methods.
func TestPromotedMethods(t *testing.T) {
	t.Parallel()
	sets := map[string]*methodSet{}
	eachFile(t, func(name string, file *ast.File) {
		floor, _, _ := strings.Cut(name, "/")
		if !strings.HasSuffix(name, "_test.go") && (floor == "cmd" || floor == "pkg" || floor == "internal" || floor == "manifests") {
			collectMethods(sets, module+path.Dir(name), file)
		}
	})
	if len(sets) < 500 {
		t.Fatalf("only %d types found", len(sets))
	}
	for name, set := range sets {
		promoted := map[string]bool{}
		others := promotedBy(sets, set, promoted)
		maps.DeleteFunc(promoted, func(method string, _ bool) bool { return set.own[method] })
		n := len(promoted) + others
		allowed := mostPromoted
		for _, object := range objects {
			if name == object {
				allowed += unstructuredObjectMethods
			}
		}
		if n > allowed {
			t.Errorf("%s has %d methods through embedded fields, at most %d are allowed: give the fields names", strings.TrimPrefix(name, module), n, allowed)
		}
	}
}

// promotedBy adds the methods that a type gets from its embedded fields, and returns the number of library methods.
func promotedBy(sets map[string]*methodSet, set *methodSet, promoted map[string]bool) int {
	others := 0
	for _, name := range set.embeds {
		embedded := sets[name]
		switch {
		case name == unstructuredObject:
			others += unstructuredObjectMethods
		case embedded != nil && embedded != set:
			maps.Copy(promoted, embedded.own)
			others += promotedBy(sets, embedded, promoted)
		}
	}
	return others
}

// collectMethods adds the types of a file, with the import path of their package.
func collectMethods(sets map[string]*methodSet, dir string, file *ast.File) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = imported
	}
	of := func(e ast.Expr) *methodSet {
		name := qualified(e, dir, imports)
		if sets[name] == nil {
			sets[name] = &methodSet{own: map[string]bool{}}
		}
		return sets[name]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				of(n.Recv.List[0].Type).own[n.Name.Name] = true
			}
			return false
		case *ast.TypeSpec:
			set := of(n.Name)
			structure, isStruct := n.Type.(*ast.StructType)
			contract, isInterface := n.Type.(*ast.InterfaceType)
			var fields []*ast.Field
			switch {
			case isStruct:
				fields = structure.Fields.List
			case isInterface:
				fields = contract.Methods.List
			}
			for _, field := range fields {
				if len(field.Names) == 0 {
					set.embeds = append(set.embeds, qualified(field.Type, dir, imports))
				} else if isInterface {
					set.own[field.Names[0].Name] = true
				}
			}
			return false
		}
		return true
	})
}

// qualified returns the import path and the name of a type.
func qualified(e ast.Expr, dir string, imports map[string]string) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return qualified(e.X, dir, imports)
	case *ast.IndexExpr:
		return qualified(e.X, dir, imports)
	case *ast.Ident:
		return dir + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return imports[x.Name] + "." + e.Sel.Name
		}
	}
	return ""
}
