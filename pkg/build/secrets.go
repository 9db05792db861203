package build

import (
	"encoding/base64"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// kubectlCopy is the annotation in which kubectl stores a copy of the whole object.
const kubectlCopy = "kubectl.kubernetes.io/last-applied-configuration"

// WithoutSecrets returns a copy of an object for display and the number of masked values: data and
// stringData of a Secret, and all values that come from a Secret. Values that SOPS encrypted are
// masked as in Masked and not counted.
func WithoutSecrets(o Object) (*unstructured.Unstructured, int) {
	shown, sealed := Masked(o.Unstructured)
	secret := o.GetAPIVersion() == "v1" && o.GetKind() == controllers.Secret
	if !secret && len(o.Secret) == 0 && o.Twin == nil {
		return shown, 0
	}
	if !sealed {
		shown = shown.DeepCopy()
	}
	masked := 0
	if secret {
		masked += maskAll(shown.Object, "data") + maskAll(shown.Object, "stringData")
	}
	for _, path := range o.Secret {
		masked += maskAt(shown.Object, path)
	}
	if alias := o.Alias(); alias != controllers.IDOf(o.Unstructured.Object) {
		shown.SetGroupVersionKind(alias.GroupKind().WithVersion(o.GroupVersionKind().Version))
		shown.SetName(alias.Name)
		shown.SetNamespace(alias.Namespace)
		masked++
	}
	if annotations := shown.GetAnnotations(); masked > 0 && annotations[kubectlCopy] != "" {
		annotations[kubectlCopy] = redact.Mask
		shown.SetAnnotations(annotations)
		masked++
	}
	return shown, masked
}

// maskAll masks each value of a map, or the whole field if it is not a map.
func maskAll(o map[string]any, field string) int {
	values, isMap := o[field].(map[string]any)
	if !isMap {
		if o[field] == nil {
			return 0
		}
		o[field] = redact.Mask
		return 1
	}
	masked := 0
	for key := range values {
		masked += maskAt(values, []string{key})
	}
	return masked
}

// maskAt masks the value at a path. With an empty path it masks all fields of an object except
// apiVersion, kind and metadata. It returns the number of values that were not masked before.
func maskAt(value any, path []string) int {
	if len(path) == 0 {
		o, _ := value.(map[string]any)
		masked := 0
		for key := range o {
			if key != "apiVersion" && key != "kind" && key != "metadata" {
				masked += maskAt(o, []string{key})
			}
		}
		return masked
	}
	var get func() any
	var set func(any)
	switch in := value.(type) {
	case map[string]any:
		if _, there := in[path[0]]; !there {
			return 0
		}
		get, set = func() any { return in[path[0]] }, func(v any) { in[path[0]] = v }
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(in) {
			return 0
		}
		get, set = func() any { return in[i] }, func(v any) { in[i] = v }
	default:
		return 0
	}
	if len(path) > 1 {
		return maskAt(get(), path[1:])
	}
	if isMask(get()) {
		return 0
	}
	set(redact.Mask)
	return 1
}

// isMask reports whether a value is already masked.
func isMask(value any) bool {
	text, _ := value.(string)
	for _, mask := range []string{hidden, hiddenLogin} {
		if text == mask || text == base64.StdEncoding.EncodeToString([]byte(mask)) {
			return true
		}
	}
	return text == redact.Mask
}
