package diff

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/placeholder"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Concealment replaces names of objects and text in messages that are derived from secret values.
// The values of objects are masked when they are compared. The zero value replaces nothing.
type Concealment struct {
	// names holds the aliases of objects by group, kind and name. parts holds the aliases of other
	// names.
	names map[[3]string]string
	parts map[string]string
	// values holds the derived values that are replaced in messages.
	values map[string]bool
}

// Add adds the names and values in a build that are derived from secret values.
func (c *Concealment) Add(b *build.Result) {
	for _, o := range b.Objects {
		c.addObject(o)
	}
	for _, secret := range b.SecretValues {
		c.addValue(secret)
	}
}

func (c *Concealment) addObject(o build.Object) {
	if c.names == nil {
		c.names, c.parts, c.values = map[[3]string]string{}, map[string]string{}, map[string]bool{}
	}
	if o.Twin == nil {
		return
	}
	ref := controllers.VersionedIDOf(o.Unstructured.Object)
	shown := o.Alias()
	for part, other := range map[string]string{ref.Group: shown.Group, ref.Kind: shown.Kind, ref.Namespace: shown.Namespace, ref.Name: shown.Name} {
		if part == other {
			continue
		}
		if part == ref.Name {
			c.names[[3]string{ref.Group, ref.Kind, ref.Name}] = other
		}
		if part != ref.Name || !isPublic(o) {
			c.parts[part] = other
		}
	}
	for _, path := range o.Secret {
		value := valueAt(o.Object, path)
		eachText(value, c.addValue)
		if namespace, ok := value.(string); ok && build.IsHelmRelease(o.Unstructured) && slices.Equal(path, []string{"spec", "targetNamespace"}) {
			c.parts[namespace] = placeholder.Alias(namespace)
		}
	}
}

// isPublic reports whether only the presence of an object is derived from secret values. Its name
// may be a word of any message.
func isPublic(o build.Object) bool { return len(o.Twin.Object) == 0 }

// addValue adds a text unless it is too short to be recognized.
func (c *Concealment) addValue(text string) {
	const recognizable = 6
	if len(text) >= recognizable {
		if c.values == nil {
			c.values = map[string]bool{}
		}
		c.values[text] = true
	}
}

// eachText calls each for every key and every scalar below a value.
func eachText(value any, each func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			each(key)
			eachText(below, each)
		}
	case []any:
		for _, below := range value {
			eachText(below, each)
		}
	case nil, bool:
	default:
		each(fmt.Sprint(value))
	}
}

// DerivedTexts returns the keys and values of an object that are derived from secret values.
func DerivedTexts(o build.Object) []string {
	var texts []string
	for _, path := range o.Secret {
		eachText(valueAt(o.Object, path), func(text string) {
			if len(text) >= short {
				texts = append(texts, text)
			}
		})
	}
	return texts
}

// Text returns a message without derived names and values.
func (c *Concealment) Text(text string) string {
	for _, value := range longestFirst(c.values) {
		text = strings.ReplaceAll(text, value, maskSame)
	}
	return c.named(text)
}

// named returns a text with the aliases of names.
func (c *Concealment) named(text string) string {
	for _, name := range longestFirst(c.parts) {
		text = replaceWord(text, name, c.parts[name])
	}
	return text
}

func longestFirst[V any](texts map[string]V) []string {
	return slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
}

// replaceWord replaces a word where it is not a part of a longer one.
func replaceWord(text, word, by string) string {
	if word == "" {
		return text
	}
	inWord := func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	var b strings.Builder
	for {
		at := strings.Index(text, word)
		if at < 0 {
			return b.String() + text
		}
		end := at + len(word)
		if at > 0 && inWord(text[at-1]) || end < len(text) && inWord(text[end]) {
			b.WriteString(text[:at+1])
			text = text[at+1:]
			continue
		}
		b.WriteString(text[:at] + by)
		text = text[end:]
	}
}

// concealedError is an error without derived names and values.
type concealedError struct {
	error
	text string
}

func (e *concealedError) Error() string { return e.text }
func (e *concealedError) Unwrap() error { return e.error }

// Error returns an error without derived names and values.
func (c *Concealment) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := c.Text(err.Error()); text != err.Error() {
		return &concealedError{err, text}
	}
	return err
}

// ConcealAll replaces the names in results of comparisons with clusters, before they are shown.
func ConcealAll(results []*Result) {
	for _, r := range results {
		r.Concealed.Conceal(results)
	}
}

// Conceal replaces the names in results, or in anything else that consists of references and
// messages, in place.
func (c *Concealment) Conceal(in any) {
	if c != nil && len(c.names)+len(c.parts) > 0 {
		c.walk(reflect.ValueOf(in))
	}
}

func (c *Concealment) walk(v reflect.Value) {
	switch {
	case !v.IsValid():
	case v.Type() == reflect.TypeFor[*unstructured.Unstructured]():
		if o, _ := v.Interface().(*unstructured.Unstructured); o != nil {
			shown := c.ref(controllers.IDOf(o.Object))
			o.SetGroupVersionKind(shown.GroupKind().WithVersion(o.GroupVersionKind().Version))
			o.SetName(shown.Name)
			if shown.Namespace != "" {
				o.SetNamespace(shown.Namespace)
			}
		}
	case v.Type() == reflect.TypeFor[controllers.VersionedID]():
		c.walk(v.FieldByName("ID")) // the version does not contain names
	case v.Type() == reflect.TypeFor[controllers.ID]():
		if v.CanSet() {
			v.Set(reflect.ValueOf(c.ref(v.Interface().(controllers.ID))))
		}
	case v.Kind() == reflect.Pointer:
		c.walk(v.Elem())
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.walk(v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.walk(v.Field(i))
			}
		}
	case v.Kind() == reflect.String && v.CanSet():
		v.SetString(c.named(v.String()))
	}
}

// ref returns a reference with the aliases of its names.
func (c *Concealment) ref(r controllers.ID) controllers.ID {
	shown := r
	shown.Name = cmp.Or(c.names[[3]string{r.Group, r.Kind, r.Name}], r.Name)
	shown.Group, shown.Kind = cmp.Or(c.parts[r.Group], r.Group), cmp.Or(c.parts[r.Kind], r.Kind)
	shown.Namespace = cmp.Or(c.parts[r.Namespace], r.Namespace)
	return shown
}
