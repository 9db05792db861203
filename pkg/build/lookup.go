package build

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// ErrNotFound is returned for an object that does not exist.
var ErrNotFound = errors.New("not found")

// Lookup finds ConfigMaps and Secrets, for example on the cluster or in the repository.
type Lookup interface {
	// Data returns the decoded data of a ConfigMap or a Secret, or ErrNotFound if it does not
	// exist.
	Data(ctx context.Context, object controllers.ID) (map[string][]byte, error)
}

// LookupFunc is a function that implements Lookup.
type LookupFunc func(ctx context.Context, object controllers.ID) (map[string][]byte, error)

// Data implements Lookup.
func (f LookupFunc) Data(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
	return f(ctx, object)
}

// Lookups returns a lookup that queries the given lookups in order until one has the object.
func Lookups(in ...Lookup) Lookup {
	return LookupFunc(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		for _, l := range in {
			if data, err := l.Data(ctx, object); !errors.Is(err, ErrNotFound) {
				return data, err
			}
		}
		return nil, ErrNotFound
	})
}

// FromObjects returns a lookup among objects. If several have the same name, the last one is used.
func FromObjects(objects []*unstructured.Unstructured) Lookup {
	built := &Result{Objects: make([]Object, len(objects))}
	for i, o := range objects {
		built.Objects[i].Unstructured = o
	}
	return built.Lookup(DataOf)
}

// Lookup returns a lookup among the objects of a build, whose data read returns. If several have the
// same name, the last one is used.
func (r *Result) Lookup(read func(*unstructured.Unstructured) (map[string][]byte, error)) Lookup {
	found := map[controllers.ID]Object{}
	for _, o := range r.Objects {
		if o.GetAPIVersion() == "v1" && (o.GetKind() == controllers.ConfigMap || o.GetKind() == controllers.Secret) {
			found[controllers.IDOf(o.Unstructured.Object)] = o
		}
	}
	return LookupFunc(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		if o, ok := found[object]; ok {
			o.Depend(ctx)
			return read(o.Unstructured)
		}
		return nil, ErrNotFound
	})
}

// Wanted is the object that a template looks up, or all objects of a kind if Name is empty.
type Wanted struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Finder finds the objects that templates look up. It returns nil for an object that does not
// exist, and a list if no name is given.
type Finder func(ctx context.Context, wanted Wanted) (map[string]any, error)

// dataReference refers to a ConfigMap or a Secret in the namespace of the object that refers to it.
type dataReference struct {
	controllers.ID
	optional bool
}

// DataReferences returns the ConfigMaps and Secrets that the variables of a Kustomization or the
// values of a HelmRelease come from. Invalid references are skipped.
func DataReferences(o *unstructured.Unstructured) []controllers.ID {
	var all []controllers.ID
	for _, field := range [][]string{{"spec", "postBuild", "substituteFrom"}, {"spec", "valuesFrom"}} {
		found, _ := dataReferences(o, field...)
		for _, reference := range found {
			all = append(all, reference.ID)
		}
	}
	return all
}

// dataReferences returns the references in a field up to the first invalid reference.
func dataReferences(o *unstructured.Unstructured, field ...string) ([]dataReference, error) {
	name := strings.Join(field, ".")
	items, _, err := unstructured.NestedSlice(o.Object, field...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var all []dataReference
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return all, fmt.Errorf("%s[%d] is not a reference", name, i)
		}
		reference := dataReference{ID: controllers.ID{Namespace: o.GetNamespace()}}
		reference.Kind, _ = m["kind"].(string)
		reference.Name, _ = m["name"].(string)
		reference.optional, _ = m["optional"].(bool)
		all = append(all, reference)
	}
	return all, nil
}

// DataOf returns the decoded data of a ConfigMap or a Secret.
func DataOf(o *unstructured.Unstructured) (map[string][]byte, error) {
	data := map[string][]byte{}
	plain, encoded := "data", "binaryData"
	if o.GetKind() == controllers.Secret {
		plain, encoded = "stringData", "data"
	}
	values, _, err := unstructured.NestedStringMap(o.Object, encoded)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", describe(o), err)
	}
	for key, value := range values {
		if data[key], err = base64.StdEncoding.DecodeString(value); err != nil {
			return nil, fmt.Errorf("decoding key %q of %s: %w", key, describe(o), err)
		}
	}
	if values, _, err = unstructured.NestedStringMap(o.Object, plain); err != nil {
		return nil, fmt.Errorf("reading %s: %w", describe(o), err)
	}
	for key, value := range values {
		data[key] = []byte(value)
	}
	return data, nil
}
