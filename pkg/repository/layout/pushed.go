package layout

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
)

// MayBePushed reports whether a Kustomization with a path may read a file if the artifact of its source was pushed from a directory
// of the repository: a file in the Kustomization's directory below any other directory, another manifest, or without a path
// a file in or below a directory with a kustomization.yaml.
func MayBePushed(tree fs.FS, folder, name string) bool {
	for parent := path.Dir(name); ; parent = path.Dir(parent) {
		built := path.Join(parent, folder)
		switch {
		case folder == "." && hasKustomization(tree, parent),
			folder != "." && sourcetree.CheckDirectory(tree, built) == nil && (sourcetree.Within(built, name) || isManifest(tree, name)):
			return true
		case parent == ".":
			return folder == "." && isManifest(tree, name)
		}
	}
}

func hasKustomization(tree fs.FS, folder string) bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		_, err := fs.Stat(tree, path.Join(folder, name))
		return err == nil
	})
}

// isManifest reports whether a file may contain Kubernetes objects. A file that cannot be read may.
func isManifest(tree fs.FS, name string) bool {
	text, err := sourcetree.ReadWithin(budget.New(budget.Default()), tree, name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return bytes.Contains(text, []byte("apiVersion")) && bytes.Contains(text, []byte("kind"))
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
