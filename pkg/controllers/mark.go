package controllers

import "strings"

// Mark is an annotation and the value that has an effect.
type Mark struct{ Key, Value string }

// String returns the mark as manifests write it.
func (m Mark) String() string { return m.Key + ": " + m.Value }

// Marked tells whether an object carries a mark that controllers obey, as in
// kustomize.toolkit.fluxcd.io/reconcile: disabled. kustomize-controller reads
// marks from labels and annotations, without regard to case.
func Marked(o Object, key, value string) bool {
	for _, at := range []string{"metadata.labels", "metadata.annotations"} {
		v, _ := Path{at}.Lookup(o)
		marks, _ := v.(map[string]any)
		if is, _ := marks[key].(string); is != "" && strings.EqualFold(is, value) {
			return true
		}
	}
	return false
}
