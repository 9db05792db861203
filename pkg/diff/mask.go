package diff

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What stands for a secret value, so that it can be seen that it changes.
const (
	maskSame   = "***"
	maskBefore = "*** (before)"
	maskAfter  = "*** (after)"
)

// kubectlCopy is where kubectl keeps a copy of the whole object.
const kubectlCopy = "kubectl.kubernetes.io/last-applied-configuration"

// mask hides secret values in both versions of an object, in place: those of
// a Secret, and wherever a value stands that came out of one. built is the
// object as the build made it, to which the paths of such values refer; it is
// nil where there is none.
func mask(ref Ref, built, before, after map[string]any, secret [][]string) {
	for _, path := range secret {
		veil(built, before, after, path)
	}
	if isSecret(ref) {
		veilAll(before, after, "data")
		veilAll(before, after, "stringData")
	}
	if !isSecret(ref) && len(secret) == 0 {
		return
	}
	for _, o := range []map[string]any{before, after} {
		metadata, _ := o["metadata"].(map[string]any)
		if annotations, _ := metadata["annotations"].(map[string]any); annotations[kubectlCopy] != nil {
			annotations[kubectlCopy] = maskSame
		}
	}
}

// veilTexts masks what may have come out of a secret although nothing of the
// build tells: texts with a value that variables have now, wherever they stand,
// and, where the source is encrypted, all texts that it no longer has.
func veilTexts(before, after any, secrets []string, encrypted bool) (any, any) {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for _, key := range slices.Concat(keysOf(b), keysOf(a)) {
			old, was := b[key]
			young, is := a[key]
			old, young = veilTexts(old, young, secrets, encrypted)
			if was {
				b[key] = old
			}
			if is {
				a[key] = young
			}
		}
		return before, after
	case []any:
		a, _ := after.([]any)
		for i := range max(len(b), len(a)) {
			switch {
			case i < len(b) && i < len(a):
				b[i], a[i] = veilTexts(b[i], a[i], secrets, encrypted)
			case i < len(b):
				b[i], _ = veilTexts(b[i], nil, secrets, encrypted)
			default:
				_, a[i] = veilTexts(nil, a[i], secrets, encrypted)
			}
		}
		return before, after
	case nil:
		if _, leaf := after.(string); !leaf && after != nil {
			veilTexts(likewise(after), after, secrets, encrypted)
			return before, after
		}
	}
	return veilText(before, after, secrets, encrypted)
}

// likewise is an empty value of the same kind.
func likewise(v any) any {
	switch v.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return ""
}

func veilText(before, after any, secrets []string, encrypted bool) (any, any) {
	b, was := before.(string)
	a, is := after.(string)
	hot := func(s string) bool {
		return slices.ContainsFunc(secrets, func(secret string) bool { return holds(s, secret) })
	}
	switch {
	case before == after && hot(b):
		return maskSame, maskSame
	case was && (hot(b) || encrypted && after == nil):
		before = maskBefore
	}
	if is && hot(a) {
		after = maskAfter
	}
	return before, after
}

// short is the length of values that are found by chance in other texts.
const short = 4

func holds(text, secret string) bool { return len(secret) >= short && strings.Contains(text, secret) }

// veilAll masks each value of a map; what should be one and is not is masked whole.
func veilAll(before, after map[string]any, field string) {
	b, bMap := before[field].(map[string]any)
	a, aMap := after[field].(map[string]any)
	if before[field] != nil && !bMap || after[field] != nil && !aMap {
		veilOne(before, after, field)
		return
	}
	for _, key := range slices.Concat(keysOf(b), keysOf(a)) {
		veilOne(b, a, key)
	}
}

func keysOf(m map[string]any) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// veilOne masks one value. It does nothing to what is masked already.
func veilOne(before, after map[string]any, key string) {
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

// veil masks the value at a path of the built object in both versions. An
// element of a list is found by what names it, since the server may order and
// complete lists; a list whose elements have no names is masked whole.
func veil(built any, before, after map[string]any, path []string) {
	if len(path) == 0 {
		for _, key := range slices.Concat(keysOf(before), keysOf(after)) {
			if key != "apiVersion" && key != "kind" && key != "metadata" {
				veilOne(before, after, key)
			}
		}
		return
	}
	key := path[0]
	m, _ := built.(map[string]any)
	below := m[key]
	if list, ok := below.([]any); ok && len(path) > 1 {
		veilElement(list, before, after, path)
		return
	}
	b, bMap := before[key].(map[string]any)
	a, aMap := after[key].(map[string]any)
	if len(path) == 1 || !bMap && before[key] != nil || !aMap && after[key] != nil {
		veilOne(before, after, key)
		return
	}
	veil(below, b, a, path[1:])
}

func veilElement(list []any, before, after map[string]any, path []string) {
	key := path[0]
	b, _ := before[key].([]any)
	a, _ := after[key].([]any)
	i, err := strconv.Atoi(path[1])
	id := identifier(list, b, a)
	if err != nil || i < 0 || i >= len(list) || id == "" || len(path) == 2 {
		veilOne(before, after, key)
		return
	}
	element, _ := list[i].(map[string]any)
	if path[2] == id { // a secret names the element
		veilOne(before, after, key)
		return
	}
	veil(element, named(b, id, element[id]), named(a, id, element[id]), path[2:])
}

func named(list []any, id string, name any) map[string]any {
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && text(m[id]) == text(name) {
			return m
		}
	}
	return nil
}

// hide takes secret values out of a text about an object.
func hide(o *unstructured.Unstructured, text string, secrets []string) string {
	values := slices.Clone(secrets)
	if isSecret(RefOf(o)) {
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
	// The longest first, so that none is left over in part.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		if value != "" {
			text = strings.ReplaceAll(text, value, maskSame)
		}
	}
	return text
}
