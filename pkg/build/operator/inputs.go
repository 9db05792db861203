package operator

import (
	"cmp"
	"errors"
	"fmt"
	"hash/adler32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxPermutations is the number of input sets of the strategy Permute above which the operator fails.
const maxPermutations = 10_000

// The strategies that combine inputs.
const (
	flatten = "Flatten"
	permute = "Permute"
)

// provider provides sets of inputs: the ResourceSet itself, or an input provider.
type provider struct {
	id   controllers.ID
	sets []map[string]any
}

// inputs returns the sets of inputs for which the templates are executed: an empty one if the ResourceSet has none.
func (r *rendering) inputs(s *spec) ([]map[string]any, error) {
	if len(s.Inputs) == 0 && len(s.InputsFrom) == 0 {
		return []map[string]any{{}}, nil
	}
	var providers []provider
	if len(s.Inputs) > 0 {
		providers = append(providers, provider{controllers.IDOf(r.owner.Object), s.Inputs})
	}
	for _, from := range s.InputsFrom {
		found, err := r.providers(from)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if !slices.ContainsFunc(providers, func(known provider) bool { return known.id == p.id }) {
				providers = append(providers, p)
			}
		}
	}
	own := min(1, len(s.Inputs)) // comes first
	slices.SortFunc(providers[own:], func(a, b provider) int { return a.id.Compare(b.id) })
	for _, p := range providers {
		p.describe()
	}
	switch s.InputStrategy.Name {
	case "", flatten:
		var all []map[string]any
		for _, p := range providers {
			all = append(all, p.sets...)
		}
		return all, nil
	case permute:
		return permuted(providers, s.InputStrategy.IncludeEmpty)
	}
	return nil, fmt.Errorf("invalid input strategy %q: must be %s or %s", s.InputStrategy.Name, flatten, permute)
}

// providers returns the input providers that a reference selects.
func (r *rendering) providers(from reference) ([]provider, error) {
	namespace := r.owner.GetNamespace()
	selected := []controllers.ID{{Group: controllers.OperatorGroup, Kind: controllers.InputProvider, Namespace: namespace, Name: from.Name}}
	if from.Name == "" {
		var err error
		if selected, err = r.options.Select(r.ctx, namespace, from.Selector); err != nil {
			return nil, err
		}
		if len(selected) == 0 {
			return nil, &UnknownError{Provider: controllers.ID{Group: controllers.OperatorGroup, Kind: controllers.InputProvider, Namespace: namespace}}
		}
	}
	var all []provider
	for _, id := range selected {
		sets, err := r.exported(id)
		if err != nil {
			return nil, err
		}
		all = append(all, provider{id, sets})
	}
	return all, nil
}

// exported returns the inputs that an input provider exports.
func (r *rendering) exported(id controllers.ID) ([]map[string]any, error) {
	if given, ok := r.options.Inputs[id]; ok {
		return copies(given), nil
	}
	o, err := r.options.Find(r.ctx, id)
	if errors.Is(err, build.ErrNotFound) {
		return nil, &UnknownError{Provider: id}
	}
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", id, err)
	}
	if status, known, _ := unstructured.NestedSlice(o.Object, "status", "exportedInputs"); known {
		var sets []map[string]any
		err := decode(status, &sets)
		return sets, err
	}
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
	if kind != controllers.StaticProvider {
		return nil, &UnknownError{id, kind}
	}
	var values map[string]any
	if set, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "defaultValues"); set != nil {
		if err := decode(set, &values); err != nil {
			return nil, fmt.Errorf("reading spec.defaultValues of %s: %w", id, err)
		}
	}
	set := maps.Clone(values)
	if set == nil {
		set = map[string]any{}
	}
	set["id"] = checksum(cmp.Or(string(o.GetUID()), id.String()))
	return []map[string]any{set}, nil
}

// describe adds the reference to the provider to each set.
func (p provider) describe() {
	for _, set := range p.sets {
		set["provider"] = map[string]any{
			"apiVersion": controllers.OperatorGroup + "/v1", "kind": p.id.Kind, "name": p.id.Name, "namespace": p.id.Namespace,
		}
	}
}

// permuted returns the Cartesian product of the sets of all providers, each below the name of its provider.
func permuted(providers []provider, includeEmpty bool) ([]map[string]any, error) {
	all, positions := []map[string]any{{}}, []string{""}
	seen := map[string]controllers.ID{}
	for _, p := range providers {
		if len(p.sets) == 0 && !includeEmpty {
			continue
		}
		key := normalized(p.id.Name)
		if other, twice := seen[key]; twice {
			return nil, fmt.Errorf("%s and %s have the same name in inputs: %s", other, p.id, key)
		}
		seen[key] = p.id
		if len(all)*len(p.sets) > maxPermutations {
			return nil, &budget.ExceededError{Fact: fmt.Sprintf("the inputs have more than %d permutations", maxPermutations)}
		}
		var next []map[string]any
		var at []string
		for n, before := range all {
			for i, set := range p.sets {
				combined := maps.Clone(before)
				combined[key] = set
				next, at = append(next, combined), append(at, fmt.Sprintf("%s/%s=%d", positions[n], key, i))
			}
		}
		all, positions = next, at
	}
	if len(seen) == 0 {
		return nil, nil
	}
	for n, set := range all {
		set["id"] = checksum(strings.TrimPrefix(positions[n], "/"))
	}
	return all, nil
}

// normalized returns the name of an object as a key of inputs: lowercase words that are joined with underscores.
func normalized(name string) string {
	lower := strings.Map(func(r rune) rune {
		switch r = unicode.ToLower(r); {
		case unicode.IsSpace(r) || unicode.IsPunct(r):
			return '_'
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
	return strings.Join(strings.FieldsFunc(lower, func(r rune) bool { return r == '_' }), "_")
}

// checksum returns an ID as the operator computes it.
func checksum(text string) string {
	return strconv.FormatUint(uint64(adler32.Checksum([]byte(text))), 10)
}

func copies(sets []map[string]any) []map[string]any {
	all := make([]map[string]any, len(sets))
	for i, set := range sets {
		all[i] = maps.Clone(set)
	}
	return all
}

// decode decodes a part of an object and keeps integers, which templates print without exponents.
func decode(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
