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
	return slices.DeleteFunc(files, func(name string) bool {
		return !slices.ContainsFunc(releases, func(text []byte) bool {
			within := func(folder string) bool { return sourcetree.Within(folder, name) }
			return bytes.Contains(text, []byte(name)) || mentions(text, []string{name}, p.Head.Remotes) || slices.ContainsFunc(literalPaths(text), within)
		})
	})
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

// Pushes finds the changed files that Kustomizations may read if the artifact of their source was pushed from a directory of this
// repository.
type Pushes struct {
	origins *layout.Origins
	changed []string
	unread  sets.Set[string]
}

// Pushes returns the Pushes of changed files, of which no object in the graphs reads the unread ones.
func (p Pair) Pushes(changed, unread []string) (*Pushes, error) {
	origins, err := layout.NewOrigins(p.Head.ctx, p.Base.Tree, p.Head.Tree)
	return &Pushes{origins, changed, sets.New(unread...)}, err
}

// Files returns the files that a Kustomization may read. A file that another object reads counts only if it is in a directory of
// the Kustomization's path.
func (p *Pushes) Files(ks *unstructured.Unstructured, otherOwner bool) []string {
	folder := layout.Path(ks)
	origins := p.origins.Of(folder)
	// An ArtifactGenerator may copy files to other directories.
	moved := build.SourceOf(ks).Kind == generator.Artifact && !otherOwner
	if len(origins) == 0 && folder != "." && !moved {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.changed), func(name string) bool {
		if !p.unread.Has(name) {
			return otherOwner || !layout.MayBePushed(origins, folder, name, true)
		}
		return !layout.MayBePushed(origins, folder, name, otherOwner) && !(moved && layout.MayBePushed(p.origins.Of("."), ".", name, false))
	})
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

// Mentions reports whether the spec or the values of a HelmRelease contain the directory of one of the files, or an address
// of the repository. The chart of such a release may install a Kustomization that reads the files.
func (g *Graph) Mentions(hr *unstructured.Unstructured, files []string) bool {
	return inValues(g, hr, false, func(text []byte) bool { return mentions(text, files, g.Remotes) })
}

func mentions(text []byte, files, remotes []string) bool {
	for _, name := range files {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if containsPath(text, "./"+folder) || strings.Contains(folder, "/") && containsPath(text, folder) {
				return true
			}
		}
	}
	return slices.ContainsFunc(remotes, func(remote string) bool { return bytes.Contains(text, []byte(remote)) })
}

// containsPath reports whether a text contains a path that is not the beginning of a longer one.
func containsPath(text []byte, name string) bool {
	for {
		at := bytes.Index(text, []byte(name))
		if at < 0 {
			return false
		}
		text = text[at+len(name):]
		rest := bytes.TrimPrefix(text, []byte("/"))
		if len(rest) == 0 || !bytes.ContainsAny(rest[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") {
			return true
		}
	}
}
