package diff

import (
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Without returns a change without the fields for which ignore returns true. It passes paths as in
// Field. A change without remaining fields becomes Ignored and keeps its dangers.
func (c Change) Without(ignore func(path string) bool) Change {
	if c.Action != Changed || c.Before == nil || c.After == nil {
		return c
	}
	after := c.After.DeepCopy()
	n := equalize("", c.Before.Object, after.Object, ignore)
	if n == 0 {
		return c
	}
	c.IgnoredFields, c.After = n, after
	c.Fields = Fields(Content(c.Before), Content(c.After))
	if len(c.Fields) == 0 {
		c.Action = Ignored
	}
	return c
}

// equalize sets the fields of after that differ and for which ignore returns true to the values of before, and
// returns their number. It compares elements of lists with the same name, or elements without a name at the same
// position, if the lists have the same length.
func equalize(path string, before, after any, ignore func(path string) bool) (n int) {
	switch young := after.(type) {
	case map[string]any:
		old, isMap := before.(map[string]any)
		if !isMap && before != nil {
			return 0
		}
		for _, key := range keys(old, young) {
			n += equalizeField(strings.TrimPrefix(path+"."+key, "."), key, old, young, ignore)
		}
	case []any:
		old, _ := before.([]any)
		if len(old) != len(young) {
			return 0
		}
		id := identifier(old, young)
		for i := range young {
			if name := label(id, i, young[i]); name == label(id, i, old[i]) {
				n += equalize(path+"."+name, old[i], young[i], ignore)
			}
		}
	}
	return n
}

func equalizeField(path, key string, old, young map[string]any, ignore func(path string) bool) (n int) {
	was, wasSet := old[key]
	is := young[key]
	_, wasMap := was.(map[string]any)
	switch {
	case apiequality.Semantic.DeepEqual(was, is):
	case ignore(path) && wasSet:
		young[key], n = was, 1
	case ignore(path):
		delete(young, key)
		n = 1
	case wasMap && is == nil: // a missing map is equal to an empty one
		is := map[string]any{}
		if n = equalize(path, was, is, ignore); n > 0 {
			young[key] = is
		}
	default:
		n = equalize(path, was, is, ignore)
	}
	return n
}
