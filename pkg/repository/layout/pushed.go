package layout

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// Origins finds the directories of a repository from which an artifact may have been pushed.
type Origins struct {
	// directories lists the directories by their last element, and kustomized those with a kustomization.yaml.
	directories map[string][]string
	kustomized  sets.Set[string]
}

// NewOrigins reads the names of all files in the trees of a repository.
func NewOrigins(ctx context.Context, trees ...fs.FS) (*Origins, error) {
	o := &Origins{map[string][]string{}, sets.Set[string]{}}
	seen := sets.New(".")
	for _, tree := range trees {
		if err := filetree.Walk(ctx, tree, func(name string, _ fs.DirEntry) error {
			if inspect.IsKustomizationFile(name) {
				o.kustomized.Insert(path.Dir(name))
			}
			for folder := path.Dir(name); !seen.Has(folder); folder = path.Dir(folder) {
				seen.Insert(folder)
				o.directories[path.Base(folder)] = append(o.directories[path.Base(folder)], folder)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Of returns the origins of the artifact of a Kustomization with a path: the directories that contain the path, and without a
// path those with a kustomization.yaml.
func (o *Origins) Of(folder string) sets.Set[string] {
	if folder == "." {
		return o.kustomized
	}
	found := sets.Set[string]{}
	for _, directory := range o.directories[path.Base(folder)] {
		if origin, ok := strings.CutSuffix("/"+directory, "/"+folder); ok {
			found.Insert(cmp.Or(strings.TrimPrefix(origin, "/"), "."))
		}
	}
	return found
}

// MayBePushed reports whether a Kustomization with a path may read a file if the artifact of its source was pushed from one of its
// origins: a file in the Kustomization's directory. Unless inPath is set, this is also a manifest that the directory may refer to,
// and without a path a manifest or a file below a kustomization.yaml.
func MayBePushed(origins sets.Set[string], folder, name string, inPath bool) bool {
	if folder == "." && inPath {
		return false
	}
	manifest := !inPath && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) && !strings.Contains("/"+name, "/.")
	if folder == "." && manifest {
		return true
	}
	for origin := path.Dir(name); ; origin = path.Dir(origin) {
		switch {
		case origins.Has(origin) && (folder == "." || manifest || sourcetree.Within(path.Join(origin, folder), name)):
			return true
		case origin == ".":
			return false
		}
	}
}

// Above returns the directory above the cluster's that contains a directory, or "".
func Above(tree fs.FS, cluster, folder string) string {
	for parent := path.Dir(cluster); parent != "."; parent = path.Dir(parent) {
		if sourcetree.CheckDirectory(tree, path.Join(parent, folder)) == nil {
			return parent
		}
	}
	return ""
}
