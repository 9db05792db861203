package diff

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
)

// Content returns the content of an object, or nil if there is none.
func Content(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// keptMetadata lists the fields of metadata that a build can set and the controller compares.
var keptMetadata = []string{"name", "namespace", "labels", "annotations"}

// Tidy returns a copy of an object without status and the metadata that the server maintains.
func Tidy(o map[string]any) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	clean := (&unstructured.Unstructured{Object: o}).DeepCopy()
	delete(clean.Object, "status")
	metadata, _ := clean.Object["metadata"].(map[string]any)
	short := map[string]any{}
	for _, field := range keptMetadata {
		if v, ok := metadata[field]; ok && !empty(v) {
			short[field] = v
		}
	}
	clean.Object["metadata"] = short
	return clean
}

// Sealed reports whether an object is encrypted with SOPS and was not decrypted.
func Sealed(o build.Object) bool {
	if o.Unstructured == nil {
		return false
	}
	_, still := o.Object["sops"]
	return o.Encrypted && (still || len(o.Secret) == 0)
}

// Bare returns an object with only its kind, namespace and name.
func Bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	only := &unstructured.Unstructured{Object: map[string]any{}}
	only.SetGroupVersionKind(o.GroupVersionKind())
	only.SetNamespace(o.GetNamespace())
	only.SetName(o.GetName())
	return only
}

// MaskTexts masks texts in both versions, except those that identify the object.
func MaskTexts(before, after *unstructured.Unstructured, secrets []string, encrypted bool) {
	b, a := settable(before), settable(after)
	secretTexts{secrets, encrypted}.mask(b, a)
	for o, fields := range map[*unstructured.Unstructured]map[string]any{before: b, after: a} {
		for key := range fields {
			if key != "metadata" && o != nil {
				o.Object[key] = fields[key]
			}
		}
	}
}

// settable returns the fields of an object that may hold any text. It shares maps and lists with
// the object.
func settable(o *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	if o == nil {
		return fields
	}
	for key, value := range o.Object {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			metadata, _ := value.(map[string]any)
			fields[key] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
		default:
			fields[key] = value
		}
	}
	return fields
}
