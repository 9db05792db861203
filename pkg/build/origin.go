package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Variable is a substitution variable of postBuild.
type Variable struct {
	Name, Value string
	// From is the ConfigMap or Secret of the variable, or zero if the Kustomization sets it.
	From controllers.ID
}

// Variables returns the variables of a Kustomization, sorted by name. Later entries of
// substituteFrom override earlier ones, and substitute overrides all of them.
func Variables(ctx context.Context, ks *unstructured.Unstructured, lookup Lookup) ([]Variable, error) {
	v, err := variablesOf(ctx, ks, Options{Lookup: lookup})
	if err != nil {
		return nil, err
	}
	var all []Variable
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		all = append(all, Variable{name, v.values[name], v.origins[name]})
	}
	return all, nil
}

// ValueOrigin is the origin of the values at a path and below it.
type ValueOrigin struct {
	// Path holds the map keys and list indices of the value.
	Path []string
	From controllers.ID
	// Key is the key of the ConfigMap or Secret.
	Key string
}

// Values returns the composed values of a HelmRelease and the origin of the values that are not
// from spec.values.
func Values(ctx context.Context, hr *unstructured.Unstructured, lookup Lookup) (map[string]any, []ValueOrigin, error) {
	var spec releaseSpec
	if err := convert(hr.Object["spec"], &spec); err != nil {
		return nil, nil, fmt.Errorf("reading the spec: %w", err)
	}
	known := remembering(lookup)
	values, _, err := releaseValues(ctx, hr, &spec, HelmOptions{Lookup: known})
	if err != nil {
		return nil, nil, err
	}
	var origins []ValueOrigin
	asked := map[valuesReference]bool{}
	for _, reference := range spec.ValuesFrom {
		same := valuesReference{Kind: reference.Kind, Name: reference.Name, ValuesKey: reference.key()}
		if asked[same] {
			continue
		}
		asked[same] = true
		// A value that differs if the content of the key differs comes from the key.
		object := controllers.ID{Kind: reference.Kind, Namespace: hr.GetNamespace(), Name: reference.Name}
		other := LookupFunc(func(ctx context.Context, o controllers.ID) (map[string][]byte, error) {
			data, err := known.Data(ctx, o)
			text, there := data[reference.key()]
			if o != object || !there {
				return data, err
			}
			data = maps.Clone(data)
			data[reference.key()], err = reference.disguised(text)
			return data, err
		})
		changed, _, err := releaseValues(ctx, hr, &spec, HelmOptions{Lookup: other})
		if err != nil {
			// The changed content cannot be composed, so all values may come from the key.
			origins = append(origins, ValueOrigin{nil, object, reference.key()})
			continue
		}
		for _, path := range different(values, changed, nil) {
			origins = append(origins, ValueOrigin{path, object, reference.key()})
		}
	}
	return values, origins, nil
}

// remembering returns a lookup that reads each object once.
func remembering(lookup Lookup) Lookup {
	found := map[controllers.ID]map[string][]byte{}
	return LookupFunc(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		data, ok := found[object]
		if ok && data == nil {
			return nil, ErrNotFound
		}
		if ok {
			return data, nil
		}
		data, err := lookup.Data(ctx, object)
		if err == nil && data == nil {
			data = map[string][]byte{}
		}
		if err == nil || errors.Is(err, ErrNotFound) {
			found[object] = data
		}
		return data, err
	})
}

// disguised returns other content for a key: the same structure with different values.
func (r valuesReference) disguised(text []byte) ([]byte, error) {
	if r.TargetPath != "" {
		return []byte(Alias(string(text))), nil
	}
	var values any
	if err := budget.Unmarshal(r.key(), text, &values); err != nil {
		return nil, err
	}
	return yaml.Marshal(otherValues(values))
}

func otherValues(value any) any {
	switch value := value.(type) {
	case map[string]any:
		other := make(map[string]any, len(value))
		for key, v := range value {
			other[key] = otherValues(v)
		}
		return other
	case []any:
		other := make([]any, len(value))
		for i, v := range value {
			other[i] = otherValues(v)
		}
		return other
	default:
		return Alias(fmt.Sprint(value))
	}
}
