package revision

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
)

// sameInputs reports whether a Kustomization renders to the same objects on both sides, without
// rendering it: it has the same spec, variables and files. A leaf contains no Kustomization or
// HelmRelease to follow.
func (w *walker) sameInputs(p pair, base, head ancestors) (same, leaf bool) {
	source := build.SourceOf(p.head)
	if !equality.Semantic.DeepEqual(p.base.Object, p.head.Object) {
		return false, false
	}
	was, wasLocal := w.base.folder(w, source, base)
	is, isLocal := w.head.folder(w, source, head)
	if !wasLocal && !isLocal {
		return true, true // this change does not affect other repositories
	}
	if was != is || wasLocal != isLocal || !w.sameVariables(p.head, base, head) {
		return false, false
	}
	folder := path.Join(is, folderOf(p.head))
	if build.ReferenceTo(p.head) == w.head.rootRef {
		folder = w.Path
	}
	in := &inputs{w: w, root: is, leaf: true, done: map[string]bool{}}
	same = in.folder(folder)
	components, _, _ := unstructured.NestedStringSlice(p.head.Object, "spec", "components")
	for _, component := range components {
		same = same && in.entry(path.Join(folder, component))
	}
	return same, in.leaf
}

// sameVariables reports whether the substitution variables are the same on both sides.
func (w *walker) sameVariables(ks *unstructured.Unstructured, base, head ancestors) bool {
	references, _, _ := unstructured.NestedSlice(ks.Object, "spec", "postBuild", "substituteFrom")
	for _, item := range references {
		m, _ := item.(map[string]any)
		kind, _ := m["kind"].(string)
		name, _ := m["name"].(string)
		if !w.sameData(build.Reference{Kind: kind, Namespace: ks.GetNamespace(), Name: name}, base, head) {
			return false
		}
	}
	return true
}

func (w *walker) sameData(object build.Reference, base, head ancestors) bool {
	was, wasErr := w.base.lookup(base).Data(w.ctx, object)
	is, isErr := w.head.lookup(head).Data(w.ctx, object)
	if wasErr != nil || isErr != nil {
		return wasErr != nil && isErr != nil && wasErr.Error() == isErr.Error()
	}
	return equality.Semantic.DeepEqual(was, is)
}

// inputs follows the files that the build of a folder reads, as long as they are the same on both
// sides.
type inputs struct {
	w *walker
	// root is the folder of the source; the build cannot read files above it.
	root string
	leaf bool
	done map[string]bool
}

// sameHash reports whether a name is the same on both sides, and whether it exists.
func (r *inputs) sameHash(name string) (same, there bool) {
	was, wasErr := r.w.base.Tree.Hash(name)
	is, isErr := r.w.head.Tree.Hash(name)
	if errors.Is(wasErr, fs.ErrNotExist) && errors.Is(isErr, fs.ErrNotExist) {
		return true, false
	}
	return wasErr == nil && isErr == nil && was == is, true
}

// entry follows a file or a folder that a kustomization names.
func (r *inputs) entry(name string) bool {
	if r.done[name] || !within(r.root, name) {
		return true
	}
	info, err := fs.Stat(r.w.head.Tree, name)
	if err == nil && info.IsDir() {
		return r.folder(name)
	}
	r.done[name] = true
	same, there := r.sameHash(name)
	if same && there {
		return r.file(name)
	}
	return same
}

// folder follows all files in a folder.
func (r *inputs) folder(name string) bool {
	if r.done[name] {
		return true
	}
	r.done[name] = true
	if same, there := r.sameHash(name); !same || !there {
		return false // the build reports a missing folder
	}
	same := true
	err := fs.WalkDir(r.w.head.Tree, name, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			same = same && r.file(file)
		}
		if !same {
			return fs.SkipAll
		}
		return err
	})
	return same && err == nil
}

// fluxMarkers are the texts of which a file contains at least one if it contains a Kustomization
// or HelmRelease.
var fluxMarkers = [][]byte{[]byte("kustomize.toolkit.fluxcd.io/v"), []byte("helm.toolkit.fluxcd.io/v"), []byte("apiVersion: ${"), []byte("kind: ${")}

// file follows the references in a file that is the same on both sides.
func (r *inputs) file(name string) bool {
	text, err := fs.ReadFile(r.w.head.Tree, name)
	if err != nil {
		return false
	}
	for _, word := range fluxMarkers {
		if bytes.Contains(text, word) {
			r.leaf = false
		}
	}
	isKustomization := false
	for _, recognised := range konfig.RecognizedKustomizationFileNames() {
		isKustomization = isKustomization || path.Base(name) == recognised
	}
	// Other files refer to files only in the configuration of a plugin.
	if !isKustomization && (!bytes.Contains(text, []byte("builtin")) || !bytes.Contains(text, []byte(".."))) {
		return true
	}
	same := true
	for document := range bytes.SplitSeq(text, []byte("\n---")) {
		var content map[string]any
		if budget.Unmarshal("", document, &content) != nil {
			same = same && !isKustomization
			continue
		}
		if isKustomization || content["apiVersion"] == "builtin" {
			texts(content, func(value string) { same = same && r.refers(path.Dir(name), value, isKustomization) })
		}
	}
	return same
}

// texts calls call for every text in a document, and in documents within it.
func texts(value any, call func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, below := range value {
			texts(below, call)
		}
	case []any:
		for _, below := range value {
			texts(below, call)
		}
	case string:
		var inner any
		if strings.Contains(value, "\n") && budget.Unmarshal("", []byte(value), &inner) == nil {
			if _, text := inner.(string); !text {
				texts(inner, call)
				return
			}
		}
		call(value)
	}
}

// refers follows a text if it is a path: "file", or "key=file".
func (r *inputs) refers(folder, value string, kustomization bool) bool {
	if kustomization && remote(value) {
		r.leaf = false // the content of a remote base is unknown
		return true
	}
	if strings.ContainsAny(value, "\n\x00") {
		return true
	}
	same := true
	_, file, keyed := strings.Cut(value, "=")
	for _, name := range []string{value, file} {
		if name == "" || !keyed && name == file || !strings.Contains(name, "..") && !path.IsAbs(name) {
			continue
		}
		target := clean(path.Join(folder, name))
		if path.IsAbs(name) {
			target = clean(path.Join(r.root, name))
		}
		if !within(folder, target) || path.IsAbs(name) {
			same = same && r.entry(target)
		}
	}
	return same
}

func remote(value string) bool {
	for _, mark := range []string{"://", "git@", "github.com/", "?ref=", "gh:", "git::"} {
		if strings.Contains(value, mark) {
			return true
		}
	}
	return false
}
