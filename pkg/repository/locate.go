package repository

import (
	"cmp"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Wanted is an object to locate in the repository.
type Wanted struct {
	Object controllers.ID
	// Applier is the Kustomization or ResourceSet that applies the object. If it is nil, the object has no place: the templates
	// of a chart are not objects.
	Applier *unstructured.Unstructured
	// Field is a field of the object, such as spec.ports[0].port, or "".
	Field string
	// Value is the value of the field, which patches may set in other files, or "".
	Value string
}

// Place is a position in a file of the repository.
type Place struct {
	// File is "" if no file, or more than one, may define the object.
	File string
	// Line is the line of the field, or of its innermost parent in the file. It is 0 if unknown.
	Line int
}

// position is a document in a file that may contain an object.
type position struct {
	file     string
	document sourcetree.Document
}

// Locate returns the places of objects, in the order of wanted.
func Locate(g *Graph, wanted []Wanted) ([]Place, error) {
	places := make([]Place, len(wanted))
	wanted = slices.Clone(wanted)
	for i, w := range wanted {
		wanted[i] = w.template(g)
	}
	positions := map[controllers.ID][]position{} // without the namespace, which may not be in the file
	for _, w := range wanted {
		if w.defined() {
			positions[w.Object.WithoutNamespace()] = nil
		}
	}
	if len(positions) == 0 {
		return places, nil
	}
	found, err := sourcetree.Search(g.ctx, g.Tree, nil, func(o *unstructured.Unstructured) bool {
		_, ok := positions[controllers.IDOf(o.Object).WithoutNamespace()]
		return ok
	})
	if err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for _, m := range found {
		if read[m.File] {
			continue
		}
		read[m.File] = true
		text, err := fs.ReadFile(g.Tree, m.File)
		if err != nil || budget.YAML(m.File, text) != nil {
			continue // a document that is not the object's exceeds the limits
		}
		for _, document := range sourcetree.Positions(text) {
			name := document.ID().WithoutNamespace()
			if all, ok := positions[name]; ok {
				positions[name] = append(all, position{m.File, document})
			}
		}
	}
	files := map[controllers.ID]map[string]bool{}
	lists := kustomizations{g.Tree, map[string]kustomization{}}
	for i, w := range wanted {
		all := positions[w.Object.WithoutNamespace()]
		if !w.defined() {
			continue
		}
		within := filesOf(g, w.Applier, files)
		if len(all) == 0 {
			places[i] = w.generated(lists, within)
			continue
		}
		if places[i] = w.transformed(lists, within, all); places[i].File == "" {
			places[i] = w.choose(within, all)
		}
	}
	return places, nil
}

// template returns the ResourceSet that applies the object, so that its template is located instead. The field is that of the template
// with the kind and a matching name; it is "spec" if there is not exactly one.
func (w Wanted) template(g *Graph) Wanted {
	if w.Applier == nil || !controllers.IDOf(w.Applier.Object).IsResourceSet() {
		return w
	}
	set := w.Applier.Object
	found := Wanted{Object: controllers.IDOf(set), Applier: Applier(g, controllers.IDOf(set)), Field: "spec"}
	templates := slices.DeleteFunc((controllers.Part{Object: set}).Elements("spec.resources"), func(t controllers.Part) bool {
		name, err := regexp.Compile("^" + strings.Join(quoted(action().Split(t.Text("metadata.name"), -1)), ".*") + "$")
		return err != nil || t.Text("kind") != w.Object.Kind || !name.MatchString(w.Object.Name)
	})
	if len(templates) == 1 {
		found.Field = strings.TrimSuffix(templates[0].Field+"."+w.Field, ".")
	}
	return found
}

// action matches what a template replaces: its actions, and variables of the Kustomization.
var action = lazy.Regexp(`<<.*?>>|\$\{.*?\}`)

// quoted returns the texts as regular expressions that match only them.
func quoted(texts []string) []string {
	for i, text := range texts {
		texts[i] = regexp.QuoteMeta(text)
	}
	return texts
}

// defined reports whether a file of the repository may define the object.
func (w Wanted) defined() bool { return w.Applier != nil && build.IsKustomization(w.Applier) }

// filesOf returns the files that a Kustomization build may read.
func filesOf(g *Graph, ks *unstructured.Unstructured, known map[controllers.ID]map[string]bool) map[string]bool {
	id := controllers.IDOf(ks.Object)
	if known[id] == nil {
		known[id] = map[string]bool{}
		for _, name := range Files(g, ks) {
			known[id][name] = true
		}
	}
	return known[id]
}

// kustomizations holds the kustomization.yaml files of a tree, each read once.
type kustomizations struct {
	tree fs.FS
	read map[string]kustomization
}

// kustomization is the content of a file with the positions of its fields. It is empty for other files.
type kustomization struct {
	content   controllers.Object
	positions sourcetree.Document
}

func (k kustomizations) file(name string) kustomization {
	found, known := k.read[name]
	if known || !inspect.IsKustomizationFile(name) {
		return found
	}
	text, err := fs.ReadFile(k.tree, name)
	if err == nil && budget.Unmarshal(name, text, &found.content) == nil {
		if documents := sourcetree.Positions(text); len(documents) > 0 {
			found.positions = documents[0]
		} else {
			found.content = nil
		}
	}
	k.read[name] = found
	return found
}

// entry returns the place of a field in the only matching list entry in the files.
func (k kustomizations) entry(files map[string]bool, list, field string, matches func(controllers.Part) bool) Place {
	var found []Place
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := k.file(name)
		for _, part := range (controllers.Part{Object: file.content}).Elements(list) {
			if matches(part) {
				line, _ := file.positions.Line(part.Field + "." + field)
				found = append(found, Place{name, line})
			}
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return Place{}
}

// transformed returns the place of a container image in the images of a kustomization.yaml, if no file of the object contains
// it.
func (w Wanted) transformed(k kustomizations, files map[string]bool, all []position) Place {
	if !strings.HasSuffix(w.Field, ".image") || w.Value == "" || slices.ContainsFunc(all, func(p position) bool { text, _ := p.document.Text(w.Field); return text == w.Value }) {
		return Place{}
	}
	return k.entry(files, "images", "newTag", func(image controllers.Part) bool {
		return w.Value == cmp.Or(image.Text("newName"), image.Text("name"))+":"+image.Text("newTag")
	})
}

// suffix is the hash that kustomize appends to the name of a generated object.
var suffix = lazy.Regexp(`-[0-9a-z]{10}$`)

// Generated reports whether a name has the hash suffix of an object that kustomize has generated.
func Generated(name string) bool { return suffix().MatchString(name) }

// generated returns the place of the generator of a ConfigMap or Secret in a kustomization.yaml.
func (w Wanted) generated(k kustomizations, files map[string]bool) Place {
	list := "secretGenerator"
	switch {
	case w.Object.IsConfigMap():
		list = "configMapGenerator"
	case !w.Object.IsSecret():
		return Place{}
	}
	name := suffix().ReplaceAllString(w.Object.Name, "")
	return k.entry(files, list, "name", func(generator controllers.Part) bool {
		return generator.Text("name") == name || generator.Text("name") == w.Object.Name
	})
}

// choose returns the place of an object. Several documents may have its name: patches, and objects of other clusters and
// namespaces.
func (w Wanted) choose(files map[string]bool, all []position) Place {
	for _, keep := range []func(position) bool{
		func(p position) bool { return files[p.file] },
		func(p position) bool { return p.document.ID().Namespace == w.Object.Namespace },
		func(p position) bool { _, whole := p.document.Line(w.Field); return whole },
		func(p position) bool { text, _ := p.document.Text(w.Field); return w.Value != "" && text == w.Value },
	} {
		if kept := slices.DeleteFunc(slices.Clone(all), func(p position) bool { return !keep(p) }); len(kept) > 0 {
			all = kept
		}
	}
	switch {
	case slices.ContainsFunc(all, func(p position) bool { return p.file != all[0].file }):
		return Place{}
	case len(all) > 1:
		return Place{File: all[0].file}
	}
	line, _ := all[0].document.Line(w.Field)
	return Place{all[0].file, line}
}

// Applier returns the Kustomization that applies an object, or the HelmRelease that installs a Flux object, or nil if
// unknown.
func Applier(g *Graph, object controllers.ID) *unstructured.Unstructured {
	if by := g.found.objects[object].by; by != nil {
		return by.owner
	}
	return nil
}
