package revision

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diff"
)

// side is a revision with the results of searches in it.
type side struct {
	Revision
	// own are the folders of the sources that are this repository.
	own map[build.Reference]string
	// rootRef is the Kustomization of the cluster's folder.
	rootRef build.Reference
	// data finds ConfigMaps and Secrets among the files of a folder.
	data map[string]build.Lookup
	// objects caches the objects found in manifests.
	objects map[build.Reference]*unstructured.Unstructured
}

func newSide(r Revision) *side {
	return &side{
		Revision: r, own: map[build.Reference]string{}, data: map[string]build.Lookup{},
		objects: map[build.Reference]*unstructured.Unstructured{},
	}
}

// ancestors are the objects of a Kustomization and of all its ancestors.
type ancestors struct {
	objects []*unstructured.Unstructured
	// folders are the paths of the Kustomizations among them.
	folders []string
	lookup  build.Lookup
}

// with returns the ancestors extended by the objects of a side.
func (f ancestors) with(s *diff.Side) ancestors {
	if s == nil {
		return f
	}
	objects := append(slices.Clip(f.objects), s.Build.Unstructured()...)
	folders := slices.Clone(f.folders)
	for _, o := range s.Build.Objects {
		if folder := folderOf(o.Unstructured); build.IsKustomization(o.Unstructured) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return ancestors{objects, folders, build.FromObjects(objects)}
}

func folderOf(ks *unstructured.Unstructured) string {
	folder, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	return clean(folder)
}

func clean(folder string) string {
	if folder = strings.TrimPrefix(path.Clean("/"+folder), "/"); folder == "" {
		return "."
	}
	return folder
}

// root returns the Kustomization whose path is the cluster's folder, or nil if there is no such
// folder.
func (s *side) root(ctx context.Context, folder, namespace string) (*unstructured.Unstructured, error) {
	info, err := fs.Stat(s.Tree, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &build.PathError{Path: folder, Problem: "not a folder"}
	}
	below, err := fs.Sub(s.Tree, folder)
	if err != nil {
		return nil, err
	}
	// Every spelling of the path contains its last element.
	found, err := build.Search(ctx, below, []string{"kustomize.toolkit.fluxcd.io", path.Base(folder)}, func(o *unstructured.Unstructured) bool {
		return build.IsKustomization(o) && folderOf(o) == folder
	})
	if err != nil {
		return nil, err
	}
	root := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "flux-system", "namespace": namespace},
		"spec":     map[string]any{"path": folder, "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"}},
	}}
	if len(found) > 0 {
		if root = found[0].Unstructured; root.GetNamespace() == "" {
			root.SetNamespace(namespace)
		}
	}
	s.rootRef = build.ReferenceTo(root)
	return root, nil
}

// folder returns the folder in the repository that is the root of a source.
func (s *side) folder(w *walker, source build.Reference, above ancestors) (string, bool) {
	if folder, ok := w.Folders[source]; ok {
		return clean(folder), true
	}
	if folder, ok := s.own[source]; ok {
		return folder, true
	}
	if source.Kind != "GitRepository" || w.Local == nil {
		return "", false
	}
	o, err := s.find(w.ctx, source, above)
	if err != nil {
		return "", false
	}
	address, _, _ := unstructured.NestedString(o.Object, "spec", "url")
	if !w.Local(address) || pinned(o) {
		return "", false
	}
	return ".", true
}

// pinned reports whether a source does not follow a branch, so that a merge does not change it.
func pinned(repository *unstructured.Unstructured) bool {
	reference, _, _ := unstructured.NestedMap(repository.Object, "spec", "ref")
	for _, field := range []string{"tag", "semver", "commit", "name"} {
		if value, _ := reference[field].(string); value != "" {
			return true
		}
	}
	return false
}

// source returns the tree of a source, or ErrNotFound if it is not in this repository.
func (s *side) source(w *walker, source build.Reference, above ancestors) (fs.FS, error) {
	folder, ok := s.folder(w, source, above)
	switch {
	case !ok:
		return nil, build.ErrNotFound
	case folder == ".":
		return s.Tree, nil
	}
	return fs.Sub(s.Tree, folder)
}

// find returns a Flux object: from the ancestors, then from the files in the paths of their
// Kustomizations, then from all files.
func (s *side) find(ctx context.Context, wanted build.Reference, above ancestors) (*unstructured.Unstructured, error) {
	for _, o := range above.objects {
		if build.ReferenceTo(o) == wanted {
			return o, nil
		}
	}
	found, known := s.objects[wanted]
	if !known {
		var err error
		if found, err = s.search(ctx, wanted, above.folders); err != nil {
			return nil, err
		}
		s.objects[wanted] = found
	}
	if found == nil {
		return nil, build.ErrNotFound
	}
	return found, nil
}

func (s *side) search(ctx context.Context, wanted build.Reference, folders []string) (*unstructured.Unstructured, error) {
	matches := func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == wanted.Namespace || o.GetNamespace() == ""
		return o.GetKind() == wanted.Kind && o.GetName() == wanted.Name && here
	}
	found, err := build.Search(ctx, s.Tree, []string{wanted.Kind, wanted.Name}, matches)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	best := found[0]
	for _, m := range found {
		if slices.ContainsFunc(folders, func(folder string) bool { return within(folder, m.File) }) {
			best = m
			break
		}
	}
	if best.GetNamespace() == "" {
		best.SetNamespace(wanted.Namespace)
	}
	return best.Unstructured, nil
}

// within reports whether a name is a folder or in it.
func within(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// lookup finds ConfigMaps and Secrets in the same order as find.
func (s *side) lookup(above ancestors) build.Lookup {
	in := []build.Lookup{}
	if above.lookup != nil {
		in = append(in, above.lookup)
	}
	return build.LookupFunc(func(ctx context.Context, object build.Reference) (map[string][]byte, error) {
		chain := slices.Clip(in)
		for _, folder := range above.folders {
			if folder != "." {
				chain = append(chain, s.filesIn(folder))
			}
		}
		return build.Lookups(append(chain, s.filesIn("."))...).Data(ctx, object)
	})
}

func (s *side) filesIn(folder string) build.Lookup {
	if known, ok := s.data[folder]; ok {
		return known
	}
	tree, err := fs.Sub(s.Tree, folder)
	found := build.FromObjects(nil)
	if _, statErr := fs.Stat(s.Tree, folder); err == nil && statErr == nil {
		found = build.InRepository(tree)
	}
	s.data[folder] = found
	return found
}
