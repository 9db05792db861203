// Package inputs finds the files that the build of a directory or a chart reads, without building it.
package inputs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Tree is the content of a repository at one revision.
type Tree interface {
	fs.FS
	// Hash returns the same value for files and directories with the same content, and fs.ErrNotExist for a missing name.
	Hash(name string) (string, error)
}

// Files follows the files that a directory build reads, as long as they are the same in both trees.
type Files struct {
	base, head Tree
	// parent is set if a file may contain a Kustomization or an object of flux-operator, and release if it may contain a
	// HelmRelease.
	parent, release bool
	done            map[string]bool
	// read holds the files that the build may read; opaque is set if it also reads other files, or
	// changes names.
	read   []string
	opaque bool
	// named is set once the files have been searched for settings that change names.
	named bool
}

// New returns the files of a build whose tree is base or head. Both may be the same.
func New(base, head Tree) *Files {
	return &Files{base: base, head: head, done: map[string]bool{}}
}

// Kustomization follows the files of a Kustomization with the same spec in both trees, and reports whether they are the same.
func (f *Files) Kustomization(ks *unstructured.Unstructured, folder string) bool {
	same := f.folder(folder)
	components, _, _ := unstructured.NestedStringSlice(ks.Object, "spec", "components")
	for _, component := range components {
		same = same && f.entry(path.Join(folder, component))
	}
	text, err := json.Marshal(ks.Object["spec"])
	text = bytes.ReplaceAll(text, []byte(`\n`), []byte("\n")) // the lines of patches
	f.add(text)
	f.parent, f.opaque = f.parent || err != nil, f.opaque || err != nil || changesNames(text)
	return same
}

// add records which Flux objects a text may contain.
func (f *Files) add(text []byte) {
	f.parent = f.parent || mayContainParent(text)
	f.release = f.release || mayContainRelease(text)
}

// Parent reports whether a file may contain a Kustomization or an object of flux-operator.
func (f *Files) Parent() bool { return f.parent }

// Leaf reports whether no file may contain a Kustomization or HelmRelease.
func (f *Files) Leaf() bool { return !f.parent && !f.release }

// Read returns the files that the build may read.
func (f *Files) Read() []string { return f.read }

// Contains reports whether the files may contain an object with all of the words.
func (f *Files) Contains(words []string) bool {
	if !f.named {
		f.named = true
		f.opaque = f.opaque || slices.ContainsFunc(f.read, func(name string) bool {
			text, err := fs.ReadFile(f.head, name)
			return err != nil || changesNames(text)
		})
	}
	if f.opaque {
		return true
	}
	for _, word := range words {
		found := slices.ContainsFunc(f.read, func(name string) bool {
			text, err := fs.ReadFile(f.head, name)
			return err != nil || bytes.Contains(text, []byte(word))
		})
		if !found {
			return false
		}
	}
	return true
}

// Same reports whether a name is the same on both sides, and whether it exists.
func (f *Files) Same(name string) (same, there bool) {
	if f.base == f.head {
		_, err := fs.Stat(f.head, name)
		return true, !errors.Is(err, fs.ErrNotExist)
	}
	was, wasErr := f.base.Hash(name)
	is, isErr := f.head.Hash(name)
	if errors.Is(wasErr, fs.ErrNotExist) && errors.Is(isErr, fs.ErrNotExist) {
		return true, false
	}
	return wasErr == nil && isErr == nil && was == is, true
}

// entry follows a file or a directory that a kustomization references.
func (f *Files) entry(name string) bool {
	if f.done[name] {
		return true
	}
	info, err := fs.Stat(f.head, name)
	if err == nil && info.IsDir() {
		return f.folder(name)
	}
	f.done[name] = true
	same, there := f.Same(name)
	if same && there {
		return f.file(name)
	}
	return same
}

// folder follows all files in a directory.
func (f *Files) folder(name string) bool {
	if f.done[name] {
		return true
	}
	f.done[name] = true
	if same, there := f.Same(name); !same || !there {
		return false // the build reports a missing directory
	}
	same := true
	err := fs.WalkDir(f.head, name, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			same = same && f.file(file)
		}
		if !same {
			return fs.SkipAll
		}
		return err
	})
	return same && err == nil
}

// MayReadAny reports whether a text with Flux objects may contain one that reads files that the text does not mention: a
// Kustomization, an object of flux-operator, a template of any kind, or a HelmRelease whose chart another object defines.
func MayReadAny(text []byte) bool {
	return containsAny(text, "HelmChart", "ExternalArtifact") || mayContainParent(text)
}

// MayContainFlux reports whether a text may contain a Kustomization or HelmRelease, or is not UTF-8.
func MayContainFlux(text []byte) bool { return mayContainRelease(text) || mayContainParent(text) }

// mayContainRelease reports whether a text contains the API version of a HelmRelease.
func mayContainRelease(text []byte) bool { return containsAny(text, "helm.toolkit.fluxcd.io/v") }

// mayContainParent reports whether a text may contain a Kustomization, an object of flux-operator, or an object whose API
// version or kind is substituted, replaced, escaped or an alias. It does so for text that is not UTF-8.
func mayContainParent(text []byte) bool {
	return containsAny(text, "kustomize.toolkit.fluxcd.io/v", controllers.OperatorGroup+"/v", "replacements", "\x00") ||
		composes(text, "kind") || composes(text, "apiVersion")
}

// changesNames reports whether a text may contain an object with a name that is not in the text. It does so for text that is
// not UTF-8.
func changesNames(text []byte) bool {
	return containsAny(text, "namePrefix", "nameSuffix", "replacements", "\x00") || composes(text, "name")
}

func containsAny(text []byte, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return bytes.Contains(text, []byte(part)) })
}

// composes reports whether a JSON pointer ends with a field, or the value of the field is substituted, escaped or an alias. A
// comment, an anchor, a tag or the header of a block may precede the line with the value. A regular expression takes ten
// times as long.
func composes(text []byte, field string) bool {
	searched := -1 // the end of the last line that was searched
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(field))
		if i < 0 {
			return false
		}
		pointer := at+i > 0 && text[at+i-1] == '/'
		at += i + len(field)
		if pointer && (at == len(text) || !isWord(text[at])) {
			return true
		}
		value := at
		if value < len(text) && (text[value] == '"' || text[value] == '\'') {
			value++
		}
		if value = skip(text, value, space); value == len(text) || text[value] != ':' {
			continue
		}
		value = skip(text, value+1, beforeValue)
		if bytes.HasPrefix(text[value:], []byte("*")) {
			return true
		}
		if value <= searched {
			continue
		}
		searched = value + lineLength(text[value:])
		end := searched
		if value < len(text) && bytes.IndexByte([]byte("#&!0123456789"), text[value]) >= 0 {
			end = skip(text, searched, beforeValue)
			if bytes.HasPrefix(text[end:], []byte("*")) {
				return true
			}
			end += lineLength(text[end:])
		}
		if containsAny(text[value:end], "${", `\`) {
			return true
		}
	}
}

const (
	space       = " \t\n\f\r"
	beforeValue = space + `"'>|+-`
)

// skip returns the offset of the first character after an offset that is not in set.
func skip(text []byte, from int, set string) int {
	return len(text) - len(bytes.TrimLeft(text[from:], set))
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

func lineLength(text []byte) int {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return len(line)
}

// file follows the references in a file that is the same on both sides.
func (f *Files) file(name string) bool {
	text, err := fs.ReadFile(f.head, name)
	if err != nil {
		return false
	}
	f.read = append(f.read, name)
	f.add(text)
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
			texts(content, func(value string) { same = same && f.refers(path.Dir(name), value, isKustomization) })
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
func (f *Files) refers(folder, value string, kustomization bool) bool {
	if kustomization && remote(value) {
		f.parent, f.opaque = true, true // the content of a remote base is unknown
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
			same = same && f.entry(target)
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

// Chart reports whether a chart and its dependencies are the same in both trees.
func (f *Files) Chart(folder string) bool {
	if f.done[folder] {
		return true
	}
	f.done[folder] = true
	if same, _ := f.Same(folder); !same {
		return false
	}
	text, err := fs.ReadFile(f.head, path.Join(folder, "Chart.yaml"))
	if err != nil {
		return true // an archive, or Helm reports the error
	}
	dependencies, err := charts.LocalCharts("Chart.yaml", text)
	return err == nil && !slices.ContainsFunc(dependencies, func(d string) bool { return !f.Chart(sourcetree.Clean(path.Join(folder, d))) })
}

// Differing returns the files in a directory that differ between two trees.
func Differing(base, head Tree, folder string) ([]string, error) {
	names := map[string]bool{} // maps each name to whether it is a directory
	for _, tree := range []Tree{base, head} {
		entries, err := fs.ReadDir(tree, folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			names[entry.Name()] = names[entry.Name()] || entry.IsDir()
		}
	}
	var all []string
	for _, entry := range slices.Sorted(maps.Keys(names)) {
		name := path.Join(folder, entry)
		was, wasErr := base.Hash(name)
		is, isErr := head.Hash(name)
		missing := errors.Is(wasErr, fs.ErrNotExist) || errors.Is(isErr, fs.ErrNotExist)
		switch err := cmp.Or(wasErr, isErr); {
		case err != nil && !missing:
			return nil, err
		case err == nil && was == is:
		case names[entry]:
			below, err := Differing(base, head, name)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		default:
			all = append(all, name)
		}
	}
	return all, nil
}
