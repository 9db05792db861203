package validate

import (
	"context"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// place is a document in a file that may contain an object.
type place struct {
	file     string
	document sourcetree.Document
}

// locate finds the files and the lines of the findings.
func (c *cluster) locate(ctx context.Context, tree fs.FS) error {
	places := map[controllers.ID][]place{}
	for _, f := range c.findings {
		places[nameOf(f.Object.ID)] = nil
	}
	if len(places) == 0 {
		return nil
	}
	found, err := sourcetree.Search(ctx, tree, nil, func(o *unstructured.Unstructured) bool {
		_, ok := places[nameOf(controllers.IDOf(o.Object))]
		return ok
	})
	if err != nil {
		return err
	}
	read := map[string]bool{}
	for _, m := range found {
		if read[m.File] {
			continue
		}
		read[m.File] = true
		text, err := fs.ReadFile(tree, m.File)
		if err != nil {
			return err
		}
		if budget.YAML(m.File, text) != nil {
			continue // a document that is not the object's exceeds the limits
		}
		for _, document := range sourcetree.Positions(text) {
			name := nameOf(document.ID())
			if all, ok := places[name]; ok {
				places[name] = append(all, place{m.File, document})
			}
		}
	}
	files := fileIndex{}
	for i := range c.findings {
		f := &c.findings[i]
		if ks := applierOf(c, f); f.File == "" && ks != nil {
			f.File, f.Line = choose(f, files.of(c, ks), places[nameOf(f.Object.ID)])
		}
	}
	return nil
}

// nameOf returns the kind and the name of an object, whose namespace may not be in its file.
func nameOf(r controllers.ID) controllers.ID {
	return controllers.ID{Group: r.Group, Kind: r.Kind, Name: r.Name}
}

// applierOf returns the Kustomization whose files contain the object of a finding, or nil: the templates of a chart are not
// its objects.
func applierOf(c *cluster, f *Finding) *unstructured.Unstructured {
	owner := c.graph.Root()
	if f.Owner != f.Object {
		owner = c.owners[f.Owner.ID]
	} else if o := c.byRef[f.Object.ID]; o != nil {
		owner = o.side.Owner
	}
	if owner == nil || !build.IsKustomization(owner) {
		return nil
	}
	return owner
}

// fileIndex contains the files that the builds of Kustomizations may read.
type fileIndex map[controllers.ID]map[string]bool

func (i fileIndex) of(c *cluster, ks *unstructured.Unstructured) map[string]bool {
	id := controllers.IDOf(ks.Object)
	if i[id] == nil {
		i[id] = map[string]bool{}
		for _, name := range repository.Files(c.graph, ks) {
			i[id][name] = true
		}
	}
	return i[id]
}

// choose returns the file and the line of a finding. Several documents may have the name of the object: those of other
// clusters and namespaces, and patches. If more than one file remains, it returns "".
func choose(f *Finding, files map[string]bool, places []place) (file string, line int) {
	for _, keep := range []func(place) bool{
		func(p place) bool { return files[p.file] },
		func(p place) bool { return p.document.ID().Namespace == f.Object.Namespace },
		func(p place) bool { _, whole := p.document.Line(f.Field); return whole },
	} {
		if kept := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return !keep(p) }); len(kept) > 0 {
			places = kept
		}
	}
	switch {
	case len(places) == 0 || slices.ContainsFunc(places, func(p place) bool { return p.file != places[0].file }):
		return "", 0
	case len(places) > 1:
		return places[0].file, 0
	}
	line, _ = places[0].document.Line(f.Field)
	return places[0].file, line
}
