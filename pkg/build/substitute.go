package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
)

// variables holds the variables that postBuild substitutes.
type variables struct {
	values map[string]string
	// secret holds the names of the variables that come from Secrets.
	secret map[string]bool
	// origins holds the ConfigMaps and Secrets of the variables.
	origins map[string]controllers.ID
	strict  bool
	// idle is set if there is nothing to substitute.
	idle bool
	// lacking is set if some values are not known here, and keep if variables without a value are kept then.
	lacking, keep bool
	// unset is called for an object with variables without a value. It may be nil.
	unset func(o *unstructured.Unstructured, names []string)
}

var variableName = lazy.Regexp(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// variablesOf returns the variables of a Kustomization. Later entries of substituteFrom override
// earlier ones, substitute overrides all of them, and Options.Vars overrides substitute.
func variablesOf(ctx context.Context, ks *unstructured.Unstructured, o Options) (*variables, error) {
	v := &variables{values: map[string]string{}, secret: map[string]bool{}, origins: map[string]controllers.ID{}, strict: o.Strict}
	_, asked, _ := unstructured.NestedMap(ks.Object, "spec", "postBuild")
	if !asked && len(o.Vars) == 0 {
		v.idle = true
		return v, nil
	}
	if o.Lookup != nil {
		if err := v.from(ctx, ks, o); err != nil {
			return nil, err
		}
	}
	inline, _, err := unstructured.NestedStringMap(ks.Object, "spec", "postBuild", "substitute")
	if err != nil {
		return nil, fmt.Errorf("reading spec.postBuild.substitute: %w", err)
	}
	v.set(inline, controllers.ID{})
	v.set(o.Vars, controllers.ID{})
	for _, name := range o.SecretVars {
		v.secret[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(v.values)) {
		if !variableName().MatchString(name) {
			return nil, fmt.Errorf("invalid variable name %q: must contain only letters, digits and _, and not begin with a digit", name)
		}
	}
	strategy, _, _ := unstructured.NestedString(ks.Object, "spec", "postBuild", "substituteStrategy")
	v.idle = len(v.values) == 0 && strategy != "Always"
	if v.keep = v.keep && !v.strict; asked {
		v.unset = o.Unset
	}
	return v, nil
}

// set sets variables and removes line breaks from their values, as the controller does.
func (v *variables) set(values map[string]string, from controllers.ID) {
	for name, value := range values {
		v.values[name] = strings.ReplaceAll(value, "\n", "")
		v.secret[name], v.origins[name] = from.Kind == controllers.Secret, from
	}
}

func (v *variables) from(ctx context.Context, ks *unstructured.Unstructured, o Options) error {
	references, err := dataReferences(ks, "spec", "postBuild", "substituteFrom")
	if err != nil {
		return err
	}
	for i, reference := range references {
		wanted := reference.ID
		if wanted.Kind != controllers.ConfigMap && wanted.Kind != controllers.Secret {
			return fmt.Errorf("spec.postBuild.substituteFrom[%d]: invalid kind %s: must be ConfigMap or Secret", i, wanted.Kind)
		}
		data, err := o.Lookup.Data(ctx, wanted)
		switch {
		case errors.Is(err, ErrNotFound) && reference.optional:
			continue
		case err != nil && ctx.Err() == nil && o.Missing != nil && o.Missing(wanted, err):
			v.lacking, v.keep = true, o.KeepUnset
			continue
		case err != nil:
			return &VariablesError{Object: wanted, Err: err}
		}
		values := make(map[string]string, len(data))
		for key, value := range data {
			values[key] = string(value)
		}
		v.set(values, wanted)
	}
	return nil
}

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

// VariablesError is returned if a ConfigMap or Secret of postBuild.substituteFrom cannot be read.
type VariablesError struct {
	Object controllers.ID
	Err    error
}

func (e *VariablesError) Error() string {
	return fmt.Sprintf("reading %s: %s", e.Object, e.Err)
}

// Unwrap returns the underlying error.
func (e *VariablesError) Unwrap() error { return e.Err }

func (v *variables) secretValues() []string {
	var values []string
	for name, value := range v.values {
		if v.secret[name] && value != "" {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// substitute replaces the variables of an object in its YAML, as the controller does: a value may
// become a number or a map.
func (v *variables) substitute(o *Object) error {
	const switched = toolkit + "/substitute"
	if v.idle && (v.unset == nil || !v.lacking) || o.GetLabels()[switched] == "disabled" || o.GetAnnotations()[switched] == "disabled" {
		return nil
	}
	if text, err := json.Marshal(o.Object); err == nil && !bytes.Contains(text, []byte("${")) {
		return nil // YAML would take several times as long
	}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return err
	}
	names := v.without(string(text))
	if v.unset != nil && len(names) > 0 {
		v.unset(o.Unstructured, names)
	}
	if v.idle {
		return nil
	}
	if !v.lacking {
		o.Unset = names
	}
	content, err := v.evaluate(string(text))
	if err != nil {
		return err
	}
	o.Object = content
	return nil
}

// substitutedMax is the maximum size of one object after substitution.
const substitutedMax = 64 << 20

// amplification returns how often an expression can repeat the value of a variable: the replacement
// of ${NAME//PATTERN/REPLACEMENT} is inserted for each match.
func amplification(text string) int {
	longest := 1
	for _, expression := range strings.Split(text, "${")[1:] {
		expression, _, _ = strings.Cut(expression, "\n")
		if strings.Contains(expression, "/") {
			longest = max(longest, len(expression))
		}
	}
	return longest
}

func (v *variables) evaluate(text string) (map[string]any, error) {
	var missing []string
	if v.keep {
		text = v.escapeUnset(text)
	}
	left := (substitutedMax - len(text)) / amplification(text)
	replaced, err := envsubst.Eval(text, func(name string) (string, bool) {
		_, set := v.values[name]
		if v.strict && !set {
			missing = append(missing, name)
		}
		if left -= len(v.values[name]); left < 0 {
			return "", true
		}
		return v.values[name], set || !v.strict
	})
	if left < 0 {
		return nil, &budget.ExceededError{Fact: "the substituted object is larger than " + budget.Size(substitutedMax)}
	}
	if err != nil {
		// The variables before the last one have a default.
		if last := len(missing) - 1; last >= 0 && strings.Contains(err.Error(), strconv.Quote(missing[last])) {
			return nil, &UnsetError{missing[last]}
		}
		return nil, err
	}
	if err := budget.YAML("", []byte(replaced)); err != nil {
		return nil, err
	}
	content, err := yaml.YAMLToJSON([]byte(replaced))
	if err != nil {
		return nil, fmt.Errorf("parsing the substituted object: %w", err)
	}
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, fmt.Errorf("decoding the substituted object: %w", err)
	}
	return object, nil
}

// plainVariable matches a variable without a default or another operation, and the preceding dollar
// signs.
var plainVariable = lazy.Regexp(`(\$*)\$\{([_[:alpha:]][_[:alnum:]]*)\}`)

// escapeUnset escapes variables without a value, so that substitution keeps them.
func (v *variables) escapeUnset(text string) string {
	return plainVariable().ReplaceAllStringFunc(text, func(found string) string {
		parts := plainVariable().FindStringSubmatch(found)
		if _, set := v.values[parts[2]]; set || len(parts[1])%2 == 1 {
			return found // it has a value or is already escaped
		}
		return parts[1] + "$${" + parts[2] + "}"
	})
}

// without returns the variables of a text that have neither a value nor a default.
func (v *variables) without(text string) []string {
	var names []string
	for _, parts := range plainVariable().FindAllStringSubmatch(text, -1) {
		if _, set := v.values[parts[2]]; !set && len(parts[1])%2 == 0 && !slices.Contains(names, parts[2]) {
			names = append(names, parts[2])
		}
	}
	return names
}

// UnsetError is returned if a strict build finds a variable without a value.
type UnsetError struct{ Variable string }

func (e *UnsetError) Error() string {
	return fmt.Sprintf("variable %q is not set and has no default", e.Variable)
}

// Different returns the paths at which two trees differ.
func Different(a, b any, at []string) [][]string {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return [][]string{at}
		}
		var paths [][]string
		for _, key := range slices.Sorted(maps.Keys(a)) {
			value, ok := b[key]
			if !ok {
				return [][]string{at} // a key contains a secret
			}
			paths = append(paths, Different(a[key], value, append(slices.Clone(at), key))...)
		}
		return paths
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return [][]string{at}
		}
		var paths [][]string
		for i := range a {
			paths = append(paths, Different(a[i], b[i], append(slices.Clone(at), strconv.Itoa(i)))...)
		}
		return paths
	default:
		if a == b {
			return nil
		}
		return [][]string{at}
	}
}
