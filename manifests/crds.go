package manifests

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// ErrNoCRDs is returned by a binary that was built without the CRDs, which are generated
// and not part of the repository.
var ErrNoCRDs = errors.New("this flux was built without the CRDs: " +
	"build it with `make build` instead of `go install`, or set --manifests to rendered manifests")

// The directory always has a README, so that a clean clone builds.
//
//go:embed crds
var crdFiles embed.FS

// CRDs returns the CRDs of all controllers of an embedded version of Flux, such as
// 2.9.6 or 2.9, as Render returns them. An empty version is the default.
func CRDs(version string) ([]*unstructured.Unstructured, error) {
	options := Defaults()
	options.Version, options.Components = version, controllers.Names(func(controllers.Controller) bool { return true })
	set, err := Render(options)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(set.Unstructured(), func(o *unstructured.Unstructured) bool { return o.GetKind() != "CustomResourceDefinition" }), nil
}

// definitions reads the CRDs of a controller in a Flux version.
func definitions(files fs.FS, version, controller string) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	for _, kind := range controllers.Kinds {
		if kind.Controller != controller {
			continue
		}
		name := "crds/" + version + "/" + kind.Group + "_" + kind.Resource + ".yaml.gz"
		data, err := decompress(files, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNoCRDs
		}
		if err != nil {
			return nil, fmt.Errorf("reading embedded %s: %w", name, err)
		}
		objects, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("reading embedded %s: %w", name, err)
		}
		crds = append(crds, objects...)
	}
	slices.SortFunc(crds, byName)
	return crds, nil
}

// decompress reads a compressed file.
func decompress(files fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	content, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(content)
}
