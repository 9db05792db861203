package charts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// MergeValues returns below merged with above: above overrides, maps are merged and all other
// values are replaced.
func MergeValues(below, above map[string]any) map[string]any {
	all := maps.Clone(below)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range above {
		over, isMap := value.(map[string]any)
		under, wasMap := all[key].(map[string]any)
		if isMap && wasMap {
			value = MergeValues(under, over)
		}
		all[key] = value
	}
	return all
}

// valuesReference is an entry of spec.valuesFrom of a HelmRelease.
type valuesReference struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	ValuesKey  string `json:"valuesKey"`
	TargetPath string `json:"targetPath"`
	Optional   bool   `json:"optional"`
	Literal    bool   `json:"literal"`
}

// releaseValues returns the composed values of a HelmRelease and the values that come from Secrets.
// Later entries of valuesFrom override earlier ones, and spec.values overrides all of them.
func releaseValues(ctx context.Context, hr *unstructured.Unstructured, spec *releaseSpec, o Options) (map[string]any, []string, error) {
	values := map[string]any{}
	var secrets []string
	items := int64(0)
	for i, reference := range spec.ValuesFrom {
		text, found, err := reference.read(ctx, hr.GetNamespace(), o)
		if err != nil {
			return nil, nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		if !found {
			continue
		}
		var layer map[string]any
		if reference.TargetPath != "" {
			// A target path is set in the inline values, as in the controller.
			values = MergeValues(values, spec.Values)
			if items += reference.items(string(text)); items > maxListItems {
				return nil, nil, &budget.ExceededError{Name: fmt.Sprintf("spec.valuesFrom[%d]", i), Fact: fmt.Sprintf("the indices in targetPath create lists with more than %d items", maxListItems)}
			}
			err = reference.set(values, string(text))
			secrets = reference.remember(secrets, string(text))
		} else if err = budget.Unmarshal(reference.key(), text, &layer); err == nil {
			values = MergeValues(values, layer)
			secrets = reference.remember(secrets, layer)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("spec.valuesFrom[%d]: reading key %q of %s/%s: %w", i, reference.key(), reference.Kind, reference.Name, err)
		}
	}
	return MergeValues(values, spec.Values), secrets, nil
}

func (r valuesReference) key() string {
	if r.ValuesKey == "" {
		return "values.yaml"
	}
	return r.ValuesKey
}

// read returns the referenced text and reports whether it exists.
func (r valuesReference) read(ctx context.Context, namespace string, o Options) ([]byte, bool, error) {
	if o.Lookup == nil {
		return nil, false, nil
	}
	if r.Kind != controllers.ConfigMap && r.Kind != controllers.Secret {
		return nil, false, fmt.Errorf("invalid kind %s: must be ConfigMap or Secret", r.Kind)
	}
	object := controllers.ID{Kind: r.Kind, Namespace: namespace, Name: r.Name}
	data, err := o.Lookup.Data(ctx, object)
	if errors.Is(err, build.ErrNotFound) && r.Optional {
		return nil, false, nil
	}
	if err != nil && ctx.Err() == nil && o.Missing != nil && o.Missing(object, err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, &build.VariablesError{Object: object, Err: err}
	}
	text, ok := data[r.key()]
	if !ok && !r.Optional {
		return nil, false, fmt.Errorf("%s has no key %q", object, r.key())
	}
	return text, ok, nil
}

// maxListItems limits the lists that indices of target paths create: a[65536] creates a list of
// 65537 items, and such lists nest.
const maxListItems = 100_000

var listIndex = lazy.Regexp(`\[\+?(\d+)`)

// items returns the number of list items that the indices of a target path can create. A value that
// is not literal can contain further paths.
func (r valuesReference) items(text string) int64 {
	if r.Literal {
		text = ""
	}
	var items int64
	for _, index := range listIndex().FindAllStringSubmatch(strings.ReplaceAll(r.TargetPath+text, `\`, ""), -1) {
		if n, err := strconv.Atoi(index[1]); err == nil && n <= strvals.MaxIndex { // Helm returns an error for larger indices
			items += int64(n) + 1
		}
	}
	return items
}

// set sets a value at the target path, with the syntax of --set of Helm.
func (r valuesReference) set(values map[string]any, text string) error {
	if r.Literal {
		return strvals.ParseLiteralInto(r.TargetPath+"="+text, values)
	}
	for _, quote := range []string{`'`, `"`} {
		if strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote) {
			return strvals.ParseIntoString(r.TargetPath+"="+strings.Trim(text, `'"`), values)
		}
	}
	return strvals.ParseInto(r.TargetPath+"="+text, values)
}

// remember appends the values that come from a Secret to secrets.
func (r valuesReference) remember(secrets []string, value any) []string {
	if r.Kind != controllers.Secret {
		return secrets
	}
	build.EachLeaf(value, func(_ []string, leaf any) {
		switch leaf.(type) {
		case nil, bool: // too few different values to be secret
		default:
			if text := fmt.Sprint(leaf); text != "" {
				secrets = append(secrets, text)
			}
		}
	})
	return secrets
}
