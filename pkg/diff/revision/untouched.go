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

// untouched tells whether a Kustomization renders to the same on both sides,
// without rendering it: it has the same spec, variables and files. A leaf
// brings nothing that would have to be followed.
func (w *walker) untouched(p pair, base, head family) (same, leaf bool) {
	source := build.SourceOf(p.head)
	if !equality.Semantic.DeepEqual(p.base.Object, p.head.Object) {
		return false, false
	}
	was, wasLocal := w.base.folder(w, source, base)
	is, isLocal := w.head.folder(w, source, head)
	if !wasLocal && !isLocal {
		return true, true // another repository has its own changes
	}
	if was != is || wasLocal != isLocal || !w.sameVariables(p.head, base, head) {
		return false, false
	}
	folder := path.Join(is, folderOf(p.head))
	if build.ReferenceTo(p.head) == w.head.rootRef {
		folder = w.Path
	}
	reads := &reads{w: w, root: is, leaf: true, done: map[string]bool{}}
	same = reads.folder(folder)
	components, _, _ := unstructured.NestedStringSlice(p.head.Object, "spec", "components")
	for _, component := range components {
		same = same && reads.entry(path.Join(folder, component))
	}
	return same, reads.leaf
}

// sameVariables tells whether what is substituted is the same on both sides.
func (w *walker) sameVariables(ks *unstructured.Unstructured, base, head family) bool {
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

func (w *walker) sameData(object build.Reference, base, head family) bool {
	was, wasErr := w.base.lookup(base).Data(w.ctx, object)
	is, isErr := w.head.lookup(head).Data(w.ctx, object)
	if wasErr != nil || isErr != nil {
		return wasErr != nil && isErr != nil && wasErr.Error() == isErr.Error()
	}
	return equality.Semantic.DeepEqual(was, is)
}

// reads follows what a build of a folder reads, as long as it is the same on
// both sides.
type reads struct {
	w *walker
	// root is the folder of the source; nothing above it is read.
	root string
	leaf bool
	done map[string]bool
}

// sameHash tells whether a name is the same on both sides, and there.
func (r *reads) sameHash(name string) (same, there bool) {
	was, wasErr := r.w.base.Tree.Hash(name)
	is, isErr := r.w.head.Tree.Hash(name)
	if errors.Is(wasErr, fs.ErrNotExist) && errors.Is(isErr, fs.ErrNotExist) {
		return true, false
	}
	return wasErr == nil && isErr == nil && was == is, true
}

// entry takes in a file or a folder that a kustomization names.
func (r *reads) entry(name string) bool {
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

// folder takes in a folder with all below it.
func (r *reads) folder(name string) bool {
	if r.done[name] {
		return true
	}
	r.done[name] = true
	if same, there := r.sameHash(name); !same || !there {
		return false // what is not there is for the build to tell
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

// brings are the words without which a file brings nothing to be followed.
var brings = [][]byte{[]byte("kustomize.toolkit.fluxcd.io/v"), []byte("helm.toolkit.fluxcd.io/v"), []byte("apiVersion: ${"), []byte("kind: ${")}

// file takes in what a file that is the same on both sides refers to.
func (r *reads) file(name string) bool {
	text, err := fs.ReadFile(r.w.head.Tree, name)
	if err != nil {
		return false
	}
	for _, word := range brings {
		if bytes.Contains(text, word) {
			r.leaf = false
		}
	}
	isKustomization := false
	for _, recognised := range konfig.RecognizedKustomizationFileNames() {
		isKustomization = isKustomization || path.Base(name) == recognised
	}
	// Of other files, only the configuration of a plugin names files.
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

// texts calls for every text in a document, and in documents within it.
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

// refers takes in what a text refers to if it is a path: "file", or "key=file".
func (r *reads) refers(folder, value string, kustomization bool) bool {
	if kustomization && remote(value) {
		r.leaf = false // nobody knows what is there
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
