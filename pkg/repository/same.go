package repository

import (
	"io/fs"
	"maps"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/inputs"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// Pair contains the graphs of two revisions.
type Pair struct{ Base, Head *Graph }

// SameKustomization reports whether a Kustomization renders to the same objects in both revisions, without rendering it: it
// has the same spec, variables and files. A leaf contains no Kustomization or HelmRelease to follow.
func (p Pair) SameKustomization(base, head *unstructured.Unstructured) (same, leaf bool) {
	if !equality.Semantic.DeepEqual(base.Object, head.Object) {
		return false, false
	}
	source := build.SourceOf(head)
	was, wasErr := p.Base.Content(source)
	is, isErr := p.Head.Content(source)
	if wasErr != nil || isErr != nil || !p.SameReferences(head) {
		return false, false
	}
	in := inputs.New(was, is)
	if same = in.Kustomization(head, folderOf(p.Head, head)); same {
		for _, g := range []*Graph{p.Base, p.Head} {
			if n := g.found.byID[controllers.IDOf(head.Object)]; n != nil {
				n.inputs = in
			}
		}
	}
	return same, in.Leaf()
}

// SameFiles reports whether a Kustomization has the same files, or none, in the trees of both revisions, as if its source
// were the repository.
func (p Pair) SameFiles(ks *unstructured.Unstructured) bool {
	in := inputs.New(p.Base.Tree, p.Head.Tree)
	folder := layout.Path(ks)
	same, there := in.Same(folder)
	return same && (!there || in.Kustomization(ks, folder))
}

// SameReferences reports whether the ConfigMaps and Secrets with the variables of a Kustomization, or the values of a
// HelmRelease, are the same in both revisions.
func (p Pair) SameReferences(o *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(build.DataReferences(o), func(object controllers.ID) bool { return !p.SameData(object) })
}

// SameData reports whether a ConfigMap or Secret is the same in both revisions.
func (p Pair) SameData(object controllers.ID) bool {
	was, wasErr := p.Base.Object(object)
	is, isErr := p.Head.Object(object)
	if wasErr != nil || isErr != nil {
		return wasErr != nil && isErr != nil && wasErr.Error() == isErr.Error()
	}
	return equality.Semantic.DeepEqual(was.Object, is.Object)
}

// SameSource reports whether a source has the same spec in both revisions, or is missing in both.
func (p Pair) SameSource(source controllers.ID) bool {
	was, wasErr := p.Base.Object(source)
	is, isErr := p.Head.Object(source)
	if wasErr != nil || isErr != nil {
		return wasErr != nil && isErr != nil
	}
	return equality.Semantic.DeepEqual(untimed(was.Object["spec"]), untimed(is.Object["spec"]))
}

// SameInputs reports whether the controller renders two versions of an object in the same way: their specs differ at most in when it
// reconciles the object.
func SameInputs(base, head *unstructured.Unstructured) bool {
	return base.GetAPIVersion() == head.GetAPIVersion() && equality.Semantic.DeepEqual(untimed(base.Object["spec"]), untimed(head.Object["spec"]))
}

// untimed returns a spec without the fields that set when the controller reconciles the object.
func untimed(spec any) any {
	fields, ok := spec.(map[string]any)
	if !ok {
		return spec
	}
	fields = maps.Clone(fields)
	for _, field := range []string{"interval", "retryInterval", "timeout"} {
		delete(fields, field)
	}
	return fields
}

// SameRelease reports whether a HelmRelease renders to the same objects in both revisions.
func (p Pair) SameRelease(base, head *unstructured.Unstructured) bool {
	// Most HelmReleases are the same, which takes less time to find out.
	if !SameInputs(base, head) && !charts.SameSpec(base, head) || !p.SameReferences(head) {
		return false
	}
	was, wasOK := chartOf(p.Base, base)
	is, isOK := chartOf(p.Head, head)
	if !wasOK || !isOK || was.source != is.source || !slices.Equal(was.names, is.names) || !equality.Semantic.DeepEqual(untimed(was.spec), untimed(is.spec)) {
		return false
	}
	for _, name := range is.names {
		same, local := p.sameChart(is.source, name)
		if !local {
			_, err := p.Head.Object(is.source)
			return err == nil && p.SameSource(is.source)
		}
		if !same {
			return false
		}
	}
	return true
}

// Indistinct returns the source of a Kustomization or HelmRelease if its reference changes but one directory contains its
// files for both references, so that the changes are unknown.
func (p Pair) Indistinct(base, head *unstructured.Unstructured) (controllers.ID, bool) {
	source, was, from := directoryOf(p.Base, base)
	_, is, to := directoryOf(p.Head, head)
	return source, was != "" && was == is && !equality.Semantic.DeepEqual(from, to)
}

// directoryOf returns the source of an owner. If one directory contains its files for all references, it also returns
// the directory and the reference.
func directoryOf(g *Graph, owner *unstructured.Unstructured) (source controllers.ID, directory string, reference map[string]any) {
	if source = build.SourceOf(owner); build.IsHelmRelease(owner) {
		c, ok := chartOf(g, owner)
		if source = c.source; !ok {
			return source, "", nil
		}
	}
	_, _ = g.Content(source) // rendering reports the error
	for key, found := range g.artifacts.foreign {
		if key.source == source && key.object != nil && found.Directory != "" {
			reference, _, _ = unstructured.NestedMap(key.object.Object, "spec", "ref")
			return source, found.Directory, reference
		}
	}
	return source, "", nil
}

// UnversionedChart returns the version of a chart in this repository whose files change while its version and the spec of
// its HelmChart stay the same, or "". With the reconcile strategy ChartVersion, source-controller packages such a chart
// again only when its version changes.
func (p Pair) UnversionedChart(base, head *unstructured.Unstructured) string {
	was, wasOK := chartOf(p.Base, base)
	is, isOK := chartOf(p.Head, head)
	if !wasOK || !isOK || was.source != is.source || !equality.Semantic.DeepEqual(was.spec, is.spec) || is.spec == nil || is.spec["reconcileStrategy"] == "Revision" {
		return ""
	}
	changed := func(name string) bool {
		same, local := p.sameChart(is.source, name)
		return local && !same
	}
	before, after := chartVersion(p.Base, is), chartVersion(p.Head, is)
	if before != after || !slices.ContainsFunc(is.names, changed) {
		return ""
	}
	return after
}

// chartVersion returns the version of a chart in this repository, or "".
func chartVersion(g *Graph, c chart) string {
	tree, err := g.Content(c.source)
	if err != nil {
		return ""
	}
	text, err := fs.ReadFile(tree, path.Join(sourcetree.Clean(c.names[0]), "Chart.yaml"))
	if err != nil {
		return ""
	}
	var chart struct {
		Version string `json:"version"`
	}
	if yaml.Unmarshal(text, &chart) != nil {
		return ""
	}
	return chart.Version
}

// sameChart reports whether a chart in this repository, with its dependencies, is the same in both revisions.
func (p Pair) sameChart(source controllers.ID, name string) (same, local bool) {
	was, wasErr := p.Base.Content(source)
	is, isErr := p.Head.Content(source)
	if wasErr != nil && isErr != nil {
		return false, false
	}
	if wasErr != nil || isErr != nil {
		return false, true
	}
	return inputs.New(was, is).Chart(sourcetree.Clean(name)), true
}
