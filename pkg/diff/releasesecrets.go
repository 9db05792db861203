package diff

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/release"
)

// oldSecrets are values of the deployed revision that may have come out of
// Secrets: those that stood in no spec, where there are such references.
func (o *outlook) oldSecrets() []string {
	if o.history == nil || !o.refersToSecrets() {
		return nil
	}
	open := map[string]bool{}
	for _, hr := range []*unstructured.Unstructured{o.Live, o.Object} {
		if hr != nil {
			values, _, _ := unstructured.NestedMap(hr.Object, "spec", "values")
			leaves(values, func(text string) { open[text] = true })
		}
	}
	if o.result != nil {
		leaves(o.result.Values, func(text string) {
			if !slices.Contains(o.result.SecretValues, text) {
				open[text] = true
			}
		})
	}
	var secrets []string
	for _, r := range []*release.Release{o.history.Last, o.history.Deployed} {
		if r != nil {
			leaves(r.Config, func(text string) {
				if !open[text] && text != "" {
					secrets = append(secrets, text)
				}
			})
		}
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}

func (o *outlook) refersToSecrets() bool {
	for _, hr := range []*unstructured.Unstructured{o.Live, o.Object} {
		if hr == nil {
			continue
		}
		references, _, _ := unstructured.NestedSlice(hr.Object, "spec", "valuesFrom")
		for _, reference := range references {
			if m, _ := reference.(map[string]any); m["kind"] == "Secret" {
				return true
			}
		}
	}
	return false
}

// leaves calls back for every text and number in values.
func leaves(v any, each func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			leaves(below, each)
		}
	case []any:
		for _, below := range v {
			leaves(below, each)
		}
	case nil, bool:
	default:
		each(fmt.Sprint(v))
	}
}
