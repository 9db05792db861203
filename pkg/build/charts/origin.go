package charts

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/controllers"
)

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
func Values(ctx context.Context, hr *unstructured.Unstructured, lookup build.Lookup) (map[string]any, []ValueOrigin, error) {
	var spec releaseSpec
	if err := build.Decode(hr.Object["spec"], &spec); err != nil {
		return nil, nil, fmt.Errorf("reading the spec: %w", err)
	}
	known := build.LookupFunc(build.Once(lookup.Data))
	values, _, err := releaseValues(ctx, hr, &spec, Options{Lookup: known})
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
		// A value that changes with the content of the key comes from the key.
		object := controllers.ID{Kind: reference.Kind, Namespace: hr.GetNamespace(), Name: reference.Name}
		other := build.LookupFunc(func(ctx context.Context, o controllers.ID) (map[string][]byte, error) {
			data, err := known.Data(ctx, o)
			text, there := data[reference.key()]
			if o != object || !there {
				return data, err
			}
			data = maps.Clone(data)
			data[reference.key()], err = reference.disguised(text)
			return data, err
		})
		changed, _, err := releaseValues(ctx, hr, &spec, Options{Lookup: other})
		if err != nil {
			// The changed content cannot be composed, so all values may come from the key.
			origins = append(origins, ValueOrigin{nil, object, reference.key()})
			continue
		}
		for _, path := range build.Different(values, changed, nil) {
			origins = append(origins, ValueOrigin{path, object, reference.key()})
		}
	}
	return values, origins, nil
}

// disguised returns other content for a key: the same structure with different values.
func (r valuesReference) disguised(text []byte) ([]byte, error) {
	if r.TargetPath != "" {
		return []byte(placeholder.Alias(string(text))), nil
	}
	var values any
	if err := budget.Unmarshal(r.key(), text, &values); err != nil {
		return nil, err
	}
	return yaml.Marshal(build.MapLeaves(values, func(leaf any) any { return placeholder.Alias(fmt.Sprint(leaf)) }))
}
