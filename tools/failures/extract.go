package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// function is a function, a method, or the value of a package variable.
type function struct {
	pkg  string
	file *ast.File
	node ast.Node
}

// program maps names to the functions of all packages. Types are not resolved: a method is looked up in all
// packages, so the result can contain unreachable functions, but never misses one.
type program struct {
	functions map[string][]function // by PACKAGE.NAME
	methods   map[string][]function // by name
	texts     map[string]bool
	seen      map[ast.Node]bool
	queue     []function
}

// entryPoints lists the methods that controller-runtime calls.
var entryPoints = []string{"Reconcile"}

// extract returns the entries of a program: PACKAGE, a tab, and a reason or a text.
func extract(packages []listed) []string {
	p := program{functions: map[string][]function{}, methods: map[string][]function{}, texts: map[string]bool{}, seen: map[ast.Node]bool{}}
	files := token.NewFileSet()
	for _, l := range packages {
		for _, name := range l.GoFiles {
			// Files that do not parse are not part of the build.
			if f, err := parser.ParseFile(files, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution); err == nil {
				p.declare(l.ImportPath, f)
			}
		}
	}
	for _, name := range entryPoints {
		for _, f := range p.methods[name] {
			if strings.Contains(f.pkg, "/internal/controller") {
				p.reach(f)
			}
		}
	}
	for len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.visit(next)
	}
	entries := make([]string, 0, len(p.texts))
	for text := range p.texts {
		entries = append(entries, text)
	}
	slices.Sort(entries)
	return entries
}

// declare adds the declarations of a file, and the reasons in its constants.
func (p *program) declare(pkg string, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				p.methods[d.Name.Name] = append(p.methods[d.Name.Name], function{pkg, f, d})
				continue
			}
			p.functions[pkg+"."+d.Name.Name] = append(p.functions[pkg+"."+d.Name.Name], function{pkg, f, d})
		case *ast.GenDecl:
			for _, s := range d.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for i, name := range v.Names {
					p.functions[pkg+"."+name.Name] = append(p.functions[pkg+"."+name.Name], function{pkg, f, v})
					if d.Tok == token.CONST && strings.HasSuffix(name.Name, "Reason") && i < len(v.Values) {
						if text, ok := literal(v.Values[i]); ok && text != "" {
							p.texts[pkg+"\treason "+text] = true
						}
					}
				}
			}
		}
	}
}

func (p *program) reach(f function) {
	if !p.seen[f.node] {
		p.seen[f.node] = true
		p.queue = append(p.queue, f)
	}
}

// visit collects the texts of a function, and the functions that it refers to.
func (p *program) visit(f function) {
	imports := map[string]string{}
	for _, i := range f.file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		base := path[strings.LastIndex(path, "/")+1:]
		if regexp.MustCompile(`^v\d+$`).MatchString(base) {
			parent := strings.TrimSuffix(path, "/"+base)
			base = parent[strings.LastIndex(parent, "/")+1:]
		}
		if i.Name != nil {
			base = i.Name.Name
		}
		imports[base] = path
	}
	ast.Inspect(f.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			p.call(f, n)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				for _, g := range p.functions[imports[x.Name]+"."+n.Sel.Name] {
					p.reach(g)
				}
				return false
			}
			for _, g := range p.methods[n.Sel.Name] {
				p.reach(g)
			}
		case *ast.Ident:
			for _, g := range p.functions[f.pkg+"."+n.Name] {
				p.reach(g)
			}
		}
		return true
	})
}

// speakers matches functions whose text can become part of a condition or an event.
var speakers = regexp.MustCompile(`^(Errorf|New|Wrapf?|NewStalling|NewGeneric|NewWaiting|NewStallingError|NewGenericError|Mark(True|False|Unknown|Stalled|Reconciling)|` +
	`(?i:annotated)?[eE]vent(f|Logf)?|AnnotatedEventf|TrueCondition|FalseCondition|UnknownCondition|Sprintf|failure|[a-z]+Error)$`)

// call collects the text of a call: the first literal argument that looks like a message.
func (p *program) call(f function, call *ast.CallExpr) {
	var name string
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
		if x, ok := fun.X.(*ast.Ident); ok && (x.Name == "log" || x.Name == "logger") {
			return
		}
	}
	if !speakers.MatchString(name) {
		return
	}
	for _, arg := range call.Args {
		if text, ok := literal(arg); ok && strings.Contains(strings.TrimSpace(text), " ") {
			p.texts[f.pkg+"\t"+strconv.Quote(text)] = true
			return
		}
	}
}

// literal returns the value of a string literal or of a concatenation of literals.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, left := literal(e.X)
		b, right := literal(e.Y)
		return a + b, left && right && e.Op == token.ADD
	case *ast.ParenExpr:
		return literal(e.X)
	}
	return "", false
}
