package sourcetree

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fluxkit/flux/internal/budget"
)

// manifestMax is the maximum size of a file that is searched for manifests.
const manifestMax = 8 << 20

// Manifest is an object and its file in a tree.
type Manifest struct {
	*unstructured.Unstructured
	File string
}

// Search returns the objects in the YAML files of a tree that match, in the order of the files.
// Only files that contain all words are decoded. Files that are not manifests are skipped.
func Search(ctx context.Context, tree fs.FS, words []string, matches func(*unstructured.Unstructured) bool) ([]Manifest, error) {
	var found []Manifest
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			return nil // entries without read permission are skipped
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir() && unsearched(entry.Name()):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		found = append(found, SearchFile(tree, name, words, matches)...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("searching the repository: %w", err)
	}
	return found, nil
}

// SearchFile is Search for a single file.
func SearchFile(tree fs.FS, name string, words []string, matches func(*unstructured.Unstructured) bool) []Manifest {
	if path.Ext(name) != ".yaml" && path.Ext(name) != ".yml" || slices.ContainsFunc(strings.Split(path.Dir(name), "/"), unsearched) {
		return nil
	}
	if info, err := fs.Stat(tree, name); err != nil || info.Size() > manifestMax {
		return nil
	}
	text, err := fs.ReadFile(tree, name)
	if err != nil || !containsAll(text, words) {
		return nil
	}
	var found []Manifest
	for _, o := range manifestsIn(text) {
		if matches(o) {
			found = append(found, Manifest{o, name})
		}
	}
	return found
}

// unsearched reports whether the files in a directory with a name are not searched.
func unsearched(folder string) bool { return folder == ".git" || folder == "node_modules" }

func containsAll(text []byte, words []string) bool {
	for _, word := range words {
		if !bytes.Contains(text, []byte(word)) {
			return false
		}
	}
	return true
}

// Documents calls each for the documents of a YAML stream, until it returns an error.
func Documents(r io.Reader, each func(document []byte) error) error {
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(r)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(document)
		}
		if err != nil {
			return err
		}
	}
}

// manifestsIn returns the objects of a YAML file.
func manifestsIn(text []byte) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	_ = Documents(bytes.NewReader(text), func(document []byte) error { // up to the first that cannot be read
		o := &unstructured.Unstructured{}
		if budget.Unmarshal("", document, &o.Object) == nil && o.GetKind() != "" && o.GetName() != "" {
			objects = append(objects, o)
		}
		return nil
	})
	return objects
}

// ReadManifests returns the objects in a YAML stream. Unlike Search, it returns
// an error for invalid YAML.
func ReadManifests(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := Documents(r, func(document []byte) error {
		o := &unstructured.Unstructured{}
		if err := budget.Unmarshal("", document, &o.Object); err != nil || len(o.Object) == 0 {
			return err
		}
		objects = append(objects, o)
		return nil
	})
	return objects, err
}
