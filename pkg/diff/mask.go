package diff

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Masks of secret values. A changed value has different masks before and after.
const (
	maskSame   = "***"
	maskBefore = "*** (before)"
	maskAfter  = "*** (after)"
)

// Mask replaces secret values in both versions of an object, in place: the data of a Secret, and
// each value that comes from a Secret. The paths of such values refer to built, the object as it
// was built, which is nil if there is none.
func Mask(ref controllers.VersionedID, built, before, after map[string]any, secret [][]string) {
	for _, path := range secret {
		maskPath(built, before, after, path)
	}
	if ref.IsSecret() {
		maskMap(before, after, "data")
		maskMap(before, after, "stringData")
	}
	if !ref.IsSecret() && len(secret) == 0 {
		return
	}
	for _, o := range []map[string]any{before, after} {
		metadata, _ := o["metadata"].(map[string]any)
		if annotations, _ := metadata["annotations"].(map[string]any); annotations[corev1.LastAppliedConfigAnnotation] != nil {
			annotations[corev1.LastAppliedConfigAnnotation] = maskSame
		}
	}
}

// DerivedNote begins the note about changed fields that are masked.
const DerivedNote = "changed, derived from a secret value"

// ExplainMasks adds a note about the changed fields that are masked. The values of a Secret need none.
func (c *Change) ExplainMasks() {
	var paths []string
	for _, f := range c.Fields {
		if !c.Object.IsSecret() && (hasMask(f.Before) || hasMask(f.After)) {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) > 0 {
		c.Notes = append(c.Notes, DerivedNote+": "+strings.Join(paths, ", "))
	}
}

// hasMask reports whether a value is a mask or contains one.
func hasMask(value any) bool {
	found := false
	eachText(value, func(text string) { found = found || text == maskSame || text == maskBefore || text == maskAfter })
	return found
}

// secretTexts masks values that may be secret although no path of the build refers to them.
type secretTexts struct {
	secrets []string
	// encrypted is set if the source is encrypted: then all texts that it no longer contains are masked.
	encrypted bool
}

// mask masks texts below two values, in place, and returns both.
func (s secretTexts) mask(before, after any) (any, any) {
	switch {
	case scalar(before) && scalar(after):
		return s.text(before, after)
	case scalar(before):
		before, _ = s.text(before, after)
	case scalar(after):
		_, after = s.text(before, after)
	}
	b, a := children(before), children(after)
	for _, key := range keys(b, a) {
		old, young := s.mask(b[key], a[key])
		set(before, key, old)
		set(after, key, young)
	}
	return before, after
}

func (s secretTexts) text(before, after any) (any, any) {
	isSecret := func(v any) bool {
		text, _ := v.(string)
		return slices.ContainsFunc(s.secrets, func(secret string) bool { return len(secret) >= short && strings.Contains(text, secret) })
	}
	_, was := before.(string)
	switch {
	case isSecret(before) && before == after:
		return maskSame, maskSame
	case isSecret(before), was && s.encrypted && after == nil:
		before = maskBefore
	}
	if isSecret(after) {
		after = maskAfter
	}
	return before, after
}

// short is the length below which a value is too likely to occur in other texts by chance.
const short = 4

// maskMap masks each value of a map. A field that is not a map is masked as a whole.
func maskMap(before, after map[string]any, field string) {
	b, bMap := before[field].(map[string]any)
	a, aMap := after[field].(map[string]any)
	if before[field] != nil && !bMap || after[field] != nil && !aMap {
		maskValue(before, after, field)
		return
	}
	for _, key := range keys(b, a) {
		maskValue(b, a, key)
	}
}

// maskValue masks one value, unless it is masked already.
func maskValue(before, after map[string]any, key string) {
	b, was := before[key]
	a, is := after[key]
	if b == maskBefore && a == maskAfter {
		return
	}
	if was && is && !apiequality.Semantic.DeepEqual(b, a) {
		before[key], after[key] = maskBefore, maskAfter
		return
	}
	if was {
		before[key] = maskSame
	}
	if is {
		after[key] = maskSame
	}
}

// maskPath masks the value at a path of the built object in both versions. It finds an element of a
// list by its name, since the server may reorder and extend lists; a list without names is masked
// as a whole.
func maskPath(built any, before, after map[string]any, path []string) {
	if len(path) == 0 {
		for _, key := range keys(before, after) {
			if key != "apiVersion" && key != "kind" && key != "metadata" {
				maskValue(before, after, key)
			}
		}
		return
	}
	key := path[0]
	m, _ := built.(map[string]any)
	below := m[key]
	if list, ok := below.([]any); ok && len(path) > 1 {
		maskElement(list, before, after, path)
		return
	}
	b, bMap := before[key].(map[string]any)
	a, aMap := after[key].(map[string]any)
	if len(path) == 1 || !bMap && before[key] != nil || !aMap && after[key] != nil {
		maskValue(before, after, key)
		return
	}
	maskPath(below, b, a, path[1:])
}

func maskElement(list []any, before, after map[string]any, path []string) {
	key := path[0]
	b, _ := before[key].([]any)
	a, _ := after[key].([]any)
	i, err := strconv.Atoi(path[1])
	id := identifier(list, b, a)
	if err != nil || i < 0 || i >= len(list) || id == "" || len(path) == 2 {
		maskValue(before, after, key)
		return
	}
	element, _ := list[i].(map[string]any)
	if path[2] == id { // the name of the element is secret
		maskValue(before, after, key)
		return
	}
	maskPath(element, named(b, id, element[id]), named(a, id, element[id]), path[2:])
}

func named(list []any, id string, name any) map[string]any {
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && fmt.Sprint(m[id]) == fmt.Sprint(name) {
			return m
		}
	}
	return nil
}

// MaskIn masks secret values in a text about an object.
func MaskIn(o *unstructured.Unstructured, text string, secrets []string) string {
	values := slices.Clone(secrets)
	if controllers.VersionedIDOf(o.Object).IsSecret() {
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		for _, v := range data {
			encoded, ok := v.(string)
			if !ok {
				continue
			}
			values = append(values, encoded)
			if plain, err := base64.StdEncoding.DecodeString(encoded); err == nil {
				values = append(values, string(plain))
			}
		}
	}
	// Replace longer values first: one may contain another.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		if value != "" {
			text = strings.ReplaceAll(text, value, maskSame)
		}
	}
	return text
}
