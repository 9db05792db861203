package controllers

import "strings"

// Setting is an annotation and the value for which it has an effect.
type Setting struct{ Key, Value string }

// String returns the annotation in the form of a manifest.
func (s Setting) String() string { return s.Key + ": " + s.Value }

// HasSetting reports whether an object has the label or annotation with the value,
// ignoring the case of the value, as kustomize-controller does for
// kustomize.toolkit.fluxcd.io/reconcile: disabled.
func HasSetting(o Object, key, value string) bool {
	for _, at := range []string{"metadata.labels", "metadata.annotations"} {
		v, _ := Path{at}.Lookup(o)
		values, _ := v.(map[string]any)
		if is, _ := values[key].(string); is != "" && strings.EqualFold(is, value) {
			return true
		}
	}
	return false
}
