package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/inputs"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// Unfollowed is an object that may create Flux objects, which the graph does not contain.
type Unfollowed struct {
	Object *unstructured.Unstructured
	Reason string
	// Directories lists the repository directories that the Flux objects may read.
	Directories []string
}

// Unfollowed returns the objects of the graph that may create Flux objects and that the graph cannot render, by ID.
func (g *Graph) Unfollowed() map[controllers.ID]Unfollowed {
	all := map[controllers.ID]Unfollowed{}
	for id, o := range g.found.objects {
		var unknown *operator.UnknownError
		reason, n := "", g.found.byID[id]
		switch {
		case n != nil && errors.As(n.err, &unknown):
			reason = n.err.Error()
		case replacesRoot(g, n):
			reason = "it syncs " + layout.Syncs(o.Unstructured) + " instead of the cluster's directory"
		case mayCreateFlux(o.Unstructured):
			reason = "it may create Flux objects, which are not rendered"
		default:
			continue
		}
		all[id] = Unfollowed{o.Unstructured, reason, mentioned(o.Unstructured)}
	}
	return all
}

// replacesRoot reports whether a FluxInstance creates a Kustomization of the same name as the root, for another directory.
func replacesRoot(g *Graph, n *node) bool {
	return n != nil && n.built != nil && controllers.IDOf(n.owner.Object).IsFluxInstance() && layout.Syncs(n.owner) != g.Path &&
		slices.ContainsFunc(n.built.Build.Objects, func(o build.Object) bool { return isRoot(g, o.Unstructured) })
}

// mayCreateFlux reports whether an object of another project's kind may create Flux objects, because it contains their
// manifests.
func mayCreateFlux(o *unstructured.Unstructured) bool {
	gvk := o.GroupVersionKind()
	_, builtIn := build.Scope(gvk)
	if _, flux := controllers.KindOf(gvk.Group, gvk.Kind); flux || builtIn || gvk.Group == "apiextensions.k8s.io" {
		return false
	}
	spec, err := json.Marshal(o.Object["spec"])
	return err != nil || embeddedManifests().Match(spec)
}

// embeddedManifests matches the API version of a Kustomization or HelmRelease in JSON, and in YAML within it.
var embeddedManifests = lazy.Regexp(`apiVersion\\*["']?\s*:\s*\\*["']?(kustomize|helm)\.toolkit\.fluxcd\.io/v`)

// paths matches the paths in manifests of Kustomizations, and of charts in a directory.
var paths = lazy.Regexp(`(?:path|chart)\\*["']?\s*:\s*\\*["']?([^"',\\\n}]+)`)

// mentioned returns the directories that an object contains, which may not exist, or "." for an unknown directory.
func mentioned(o *unstructured.Unstructured) []string {
	spec, err := json.Marshal(o.Object["spec"])
	if err != nil {
		return []string{"."}
	}
	return literalPaths(spec)
}

// literalPaths returns the paths in a manifest.
func literalPaths(text []byte) []string {
	found := map[string]bool{}
	for _, match := range paths().FindAllSubmatch(text, -1) {
		literal := string(match[1])
		if at := strings.IndexAny(literal, "<{$*"); at >= 0 {
			literal = path.Dir(literal[:at] + "x")
		}
		found[sourcetree.Clean(strings.TrimSpace(literal))] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// MayRead returns the files that Flux objects of a Kustomization that cannot be built may read. HelmReleases read only files in
// directories that they mention.
func (p Pair) MayRead(ks *unstructured.Unstructured, files []string) []string {
	files = p.readable(ks, files)
	spec, _, _ := unstructured.NestedMap(ks.Object, "spec")
	delete(spec, "path")
	own, err := yaml.Marshal(spec)
	if err != nil {
		return files
	}
	all := false
	var releases [][]byte
	look := func(text []byte) bool {
		if inputs.MayContainFlux(text) {
			all = all || inputs.MayReadAny(text)
			releases = append(releases, text)
		}
		return all
	}
	if look(own) || readsAny(p.Head, ks, look) {
		return files
	}
	mentions, folders := inputs.NewMentions(releases, p.Head.Remotes), sets.New(literalPaths(bytes.Join(releases, []byte("\n")))...)
	return slices.DeleteFunc(files, func(name string) bool {
		return !mentions.Name(name) && !mentions.Above(name) && !within(folders, name)
	})
}

// within reports whether one of the folders contains a file.
func within(folders sets.Set[string], name string) bool {
	for folder := name; ; folder = path.Dir(folder) {
		if folders.Has(folder) || folder == "." {
			return folders.Has(folder)
		}
	}
}

// readsAny reports whether a Kustomization reads a file with a property, or one that cannot be read.
func readsAny(g *Graph, ks *unstructured.Unstructured, has func([]byte) bool) bool {
	return slices.ContainsFunc(Files(g, ks), func(name string) bool {
		text, err := fs.ReadFile(g.Tree, name)
		return err != nil || has(text)
	})
}

// readable returns the files without those that ignore rules of the source of a Kustomization exclude in both revisions, such as
// workflows in .github: its Flux objects cannot read them, unless they use a source that they define.
func (p Pair) readable(ks *unstructured.Unstructured, files []string) []string {
	definesSource := func(text []byte) bool { return bytes.Contains(text, []byte("source.toolkit.fluxcd.io")) }
	if readsAny(p.Base, ks, definesSource) || readsAny(p.Head, ks, definesSource) {
		return slices.Clone(files)
	}
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool { return excludes(p.Base, ks, name) && excludes(p.Head, ks, name) })
}

// Pushed returns a function for the changed files that a Kustomization may read if the artifact of its source was pushed from a
// directory of this repository. A changed file that another object reads, because it is not unread, counts only if it is in a directory
// of the Kustomization's path.
func (p Pair) Pushed(changed, unread []string) (func(ks *unstructured.Unstructured, otherOwner bool) []string, error) {
	all, err := layout.NewOrigins(p.Head.ctx, p.Base.Tree, p.Head.Tree)
	isUnread := sets.New(unread...)
	return func(ks *unstructured.Unstructured, otherOwner bool) []string {
		folder := layout.Path(ks)
		origins := all.Of(folder)
		// An ArtifactGenerator may copy files to other directories.
		moved := build.SourceOf(ks).Kind == generator.Artifact && !otherOwner
		if len(origins) == 0 && folder != "." && !moved {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(changed), func(name string) bool {
			if !isUnread.Has(name) {
				return otherOwner || !layout.MayBePushed(origins, folder, name, true)
			}
			return !layout.MayBePushed(origins, folder, name, otherOwner) && !(moved && layout.MayBePushed(all.Of("."), ".", name, false))
		})
	}, err
}

// excludes reports whether a file is not in the artifact of the source of a Kustomization because it is excluded or not in the
// tree.
func excludes(g *Graph, ks *unstructured.Unstructured, name string) bool {
	tree, err := g.Content(build.SourceOf(ks))
	if err != nil {
		return false
	}
	_, err = fs.Stat(tree, name)
	_, inTree := fs.Stat(g.Tree, name)
	return sourcetree.IsExcluded(err) || errors.Is(err, fs.ErrNotExist) && errors.Is(inTree, fs.ErrNotExist)
}

// Changed returns the files that differ between the revisions.
func (p Pair) Changed() ([]string, error) { return inputs.Differing(p.Base.Tree, p.Head.Tree, ".") }

// Unread returns the files that no object in the graphs reads.
func (p Pair) Unread(files []string) []string {
	if len(files) == 0 {
		return nil
	}
	read := map[string]bool{}
	var charts []string
	for _, g := range []*Graph{p.Base, p.Head} {
		for _, n := range g.found.nodes {
			for _, name := range Files(g, n.owner) {
				read[inTree(g, build.SourceOf(n.owner), name)] = true
			}
		}
		for _, o := range g.found.objects {
			if build.IsHelmRelease(o.Unstructured) {
				if c, ok := chartOf(g, o.Unstructured); ok {
					for _, name := range c.names {
						charts = append(charts, inTree(g, c.source, name))
					}
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		return read[name] || slices.ContainsFunc(charts, func(chart string) bool { return chart != "." && sourcetree.Within(chart, name) })
	})
}

// inTree returns the path in the graph's tree of a file in the content of a source.
func inTree(g *Graph, source controllers.ID, name string) string {
	if folder, ok := g.Folders[source]; ok && folder.Tree == nil {
		name = path.Join(folder.Path, name)
	}
	return sourcetree.Clean(name)
}

// Mentioned returns the files whose directory the spec or the values of HelmReleases contain, or all files if they contain an address
// of the repository. The charts of such releases may install a Kustomization that reads the files.
func (g *Graph) Mentioned(files []string, releases ...*unstructured.Unstructured) []string {
	var all [][]byte
	for _, hr := range releases {
		texts, _ := valuesOf(g, hr)
		all = append(all, texts...)
	}
	mentions := inputs.NewMentions(all, g.Remotes)
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool { return !mentions.Above(name) })
}
