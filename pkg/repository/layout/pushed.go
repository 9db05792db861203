package layout

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// MayBePushed reports whether a Kustomization with a path may read a file if the artifact of its source was pushed from a directory
// of the repository: a file in the Kustomization's directory below any other one. Unless inPath is set, this is also a manifest that the
// directory may refer to, and without a path a manifest or a file below a kustomization.yaml.
func MayBePushed(tree fs.FS, folder, name string, inPath bool) bool {
	if folder == "." && inPath {
		return false
	}
	manifest := !inPath && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) && !strings.Contains("/"+name, "/.")
	if folder == "." && manifest {
		return true
	}
	for parent := path.Dir(name); ; parent = path.Dir(parent) {
		built := path.Join(parent, folder)
		switch {
		case folder == "." && hasKustomization(tree, parent),
			folder != "." && (manifest || sourcetree.Within(built, name)) && sourcetree.CheckDirectory(tree, built) == nil:
			return true
		case parent == ".":
			return false
		}
	}
}

func hasKustomization(tree fs.FS, folder string) bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		_, err := fs.Stat(tree, path.Join(folder, name))
		return err == nil
	})
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
