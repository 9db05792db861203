package build

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrNotFound is returned for an object that does not exist.
var ErrNotFound = errors.New("not found")

// Lookup finds ConfigMaps and Secrets: on the cluster, in the repository, or
// wherever a caller has them.
type Lookup interface {
	// Data returns the data of a ConfigMap or a Secret, decoded. The error of
	// one that is not there is ErrNotFound.
	Data(ctx context.Context, object Reference) (map[string][]byte, error)
}

// LookupFunc is a function as a Lookup.
type LookupFunc func(ctx context.Context, object Reference) (map[string][]byte, error)

// Data implements Lookup.
func (f LookupFunc) Data(ctx context.Context, object Reference) (map[string][]byte, error) {
	return f(ctx, object)
}

// Lookups returns the object from the first lookup that has it.
func Lookups(in ...Lookup) Lookup {
	return LookupFunc(func(ctx context.Context, object Reference) (map[string][]byte, error) {
		for _, l := range in {
			if data, err := l.Data(ctx, object); !errors.Is(err, ErrNotFound) {
				return data, err
			}
		}
		return nil, ErrNotFound
	})
}

// FromObjects finds ConfigMaps and Secrets among objects. Of several by one
// name the last one counts.
func FromObjects(objects []*unstructured.Unstructured) Lookup {
	found := map[Reference]*unstructured.Unstructured{}
	for _, o := range objects {
		if o.GetAPIVersion() == "v1" && (o.GetKind() == "ConfigMap" || o.GetKind() == "Secret") {
			found[Reference{o.GetKind(), o.GetNamespace(), o.GetName()}] = o
		}
	}
	return LookupFunc(func(_ context.Context, object Reference) (map[string][]byte, error) {
		if o, ok := found[object]; ok {
			return DataOf(o)
		}
		return nil, ErrNotFound
	})
}

// DataOf returns the decoded data of a ConfigMap or a Secret.
func DataOf(o *unstructured.Unstructured) (map[string][]byte, error) {
	data := map[string][]byte{}
	plain, encoded := "data", "binaryData"
	if o.GetKind() == "Secret" {
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
