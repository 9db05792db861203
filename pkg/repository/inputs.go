package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// inputs follows the files that a directory build reads, as long as they are the same in both trees.
type inputs struct {
	base, head Tree
	leaf       bool
	done       map[string]bool
	// read holds the files that the build may read; opaque is set if it also reads other files, or
	// changes names.
	read   []string
	opaque bool
	// named is set once the files have been searched for settings that change names.
	named bool
}

func newInputs(base, head Tree) *inputs {
	return &inputs{base: base, head: head, leaf: true, done: map[string]bool{}}
}

// kustomization follows the files of a Kustomization with the same spec in both trees.
func (r *inputs) kustomization(ks *unstructured.Unstructured, folder string) bool {
	same := r.folder(folder)
	components, _, _ := unstructured.NestedStringSlice(ks.Object, "spec", "components")
	for _, component := range components {
		same = same && r.entry(path.Join(folder, component))
	}
	text, err := json.Marshal(ks.Object["spec"])
	r.leaf = r.leaf && err == nil && !mayContainFlux(text)
	r.opaque = r.opaque || changedNames().Match(text)
	return same
}

// changedNames matches text that changes the names of objects.
var changedNames = lazy.Regexp(`name(Prefix|Suffix)|replacements|name["']?\s*:[^\n]*\$\{|/name\b`)

// contains reports whether the files may contain an object with all of the words.
func (r *inputs) contains(words []string) bool {
	if !r.named {
		r.named = true
		r.opaque = r.opaque || slices.ContainsFunc(r.read, func(name string) bool {
			text, err := fs.ReadFile(r.head, name)
			return err != nil || changedNames().Match(text)
		})
	}
	if r.opaque {
		return true
	}
	for _, word := range words {
		found := slices.ContainsFunc(r.read, func(name string) bool {
			text, err := fs.ReadFile(r.head, name)
			return err != nil || bytes.Contains(text, []byte(word))
		})
		if !found {
			return false
		}
	}
	return true
}

// sameHash reports whether a name is the same on both sides, and whether it exists.
func (r *inputs) sameHash(name string) (same, there bool) {
	if r.base == r.head {
		_, err := fs.Stat(r.head, name)
		return true, !errors.Is(err, fs.ErrNotExist)
	}
	was, wasErr := r.base.Hash(name)
	is, isErr := r.head.Hash(name)
	if errors.Is(wasErr, fs.ErrNotExist) && errors.Is(isErr, fs.ErrNotExist) {
		return true, false
	}
	return wasErr == nil && isErr == nil && was == is, true
}

// entry follows a file or a directory that a kustomization references.
func (r *inputs) entry(name string) bool {
	if r.done[name] {
		return true
	}
	info, err := fs.Stat(r.head, name)
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

// folder follows all files in a directory.
func (r *inputs) folder(name string) bool {
	if r.done[name] {
		return true
	}
	r.done[name] = true
	if same, there := r.sameHash(name); !same || !there {
		return false // the build reports a missing directory
	}
	same := true
	err := fs.WalkDir(r.head, name, func(file string, entry fs.DirEntry, err error) error {
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

// fluxMarkers matches text of a file that may contain a Kustomization or HelmRelease: an API
// version of Flux, or an API version or kind that is substituted, escaped or an alias.
var fluxMarkers = lazy.Regexp(`(kustomize|helm)\.toolkit\.fluxcd\.io/v|fluxcd\.controlplane\.io/v|(apiVersion|kind)["']?\s*:[\s"'>|+-]*([^\n]*(\$\{|\\)|\*)|/(apiVersion|kind)\b|replacements`)

// mayContainFlux reports whether a text may contain a Kustomization or HelmRelease. The expression
// is slow, so texts without any of its parts are excluded first.
func mayContainFlux(text []byte) bool {
	for _, part := range []string{"toolkit.fluxcd.io/v", controllers.OperatorGroup, "${", "\\", ": *", "/kind", "/apiVersion", "replacements"} {
		if bytes.Contains(text, []byte(part)) {
			return fluxMarkers().Match(text)
		}
	}
	return bytes.IndexByte(text, 0) >= 0 // UTF-16
}

// file follows the references in a file that is the same on both sides.
func (r *inputs) file(name string) bool {
	text, err := fs.ReadFile(r.head, name)
	if err != nil {
		return false
	}
	r.read = append(r.read, name)
	r.leaf = r.leaf && !mayContainFlux(text)
	isKustomization := inspect.IsKustomizationFile(name)
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

// texts calls call for every string in a document and in its embedded documents.
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
		r.leaf, r.opaque = false, true // the content of a remote base is unknown
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
		target := sourcetree.Clean(path.Join(folder, name))
		if path.IsAbs(name) {
			target = sourcetree.Clean(name)
		}
		if !sourcetree.Within(folder, target) || path.IsAbs(name) {
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
