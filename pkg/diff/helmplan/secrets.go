package helmplan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
)

// oldSecrets returns the values of the deployed revision that may come from Secrets: those that are
// not in a spec, if a spec references Secrets.
func (o *releasePlan) oldSecrets() []string {
	if o.history == nil || !o.refersToSecrets() {
		return nil
	}
	open := map[string]bool{}
	for _, hr := range []*unstructured.Unstructured{o.Live, o.Object} {
		if hr != nil {
			values, _, _ := unstructured.NestedMap(hr.Object, "spec", "values")
			eachScalar(values, func(text string) { open[text] = true })
		}
	}
	if o.result != nil {
		eachScalar(o.result.Values, func(text string) {
			if !slices.Contains(o.result.SecretValues, text) {
				open[text] = true
			}
		})
	}
	var secrets []string
	for _, r := range []*helm.Release{o.history.Last, o.history.Deployed} {
		if r != nil {
			eachScalar(r.Config, func(text string) {
				if !open[text] && text != "" {
					secrets = append(secrets, text)
				}
			})
		}
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}

func (o *releasePlan) refersToSecrets() bool {
	return o.Live != nil && dryrun.RefersToSecrets(o.Live) || o.Object != nil && dryrun.RefersToSecrets(o.Object)
}

// eachScalar calls each for every string and number in v.
func eachScalar(v any, each func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			eachScalar(below, each)
		}
	case []any:
		for _, below := range v {
			eachScalar(below, each)
		}
	case nil, bool:
	default:
		each(fmt.Sprint(v))
	}
}
