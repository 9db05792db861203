package assert

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	goyaml "go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
)

// maxProblems is the maximum number of problems that are reported for a file.
const maxProblems = 20

// decoder strictly decodes the nodes of a file, and collects the problems.
type decoder struct {
	file     string
	problems []string
}

func (d *decoder) position(n *goyaml.Node) Position { return Position{d.file, n.Line, n.Column} }

func (d *decoder) fail(n *goyaml.Node, format string, args ...any) {
	d.failAt(d.position(n), format, args...)
}

func (d *decoder) failAt(at Position, format string, args ...any) {
	// The path of the document itself is empty.
	problem := at.String() + ": " + strings.TrimPrefix(fmt.Sprintf(format, args...), ": ")
	if len(d.problems) < maxProblems && !slices.Contains(d.problems, problem) {
		d.problems = append(d.problems, problem)
	}
}

// decode decodes a node into a value of a type of this package. at is the path of the node.
func (d *decoder) decode(n *goyaml.Node, at string, into reflect.Value) {
	if n.Kind == goyaml.AliasNode {
		n = n.Alias
	}
	switch target := into.Addr().Interface().(type) {
	case *time.Duration:
		d.duration(n, at, target)
		return
	case *Pattern:
		d.pattern(n, at, target)
		return
	case *Object:
		if d.is(n, goyaml.MappingNode, at, "an object") {
			*target, _ = d.value(n).(map[string]any)
		}
		return
	case *any:
		*target = d.value(n)
		return
	case *map[string]string:
		d.plain(n, at, target)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.decode(n, at, into.Elem())
	case reflect.Struct:
		d.object(n, at, into)
	case reflect.Slice:
		d.list(n, at, into)
	case reflect.Map:
		d.texts(n, at, into)
	case reflect.Bool:
		if n.Tag != "!!bool" || n.Decode(into.Addr().Interface()) != nil {
			d.fail(n, "%s: must be true or false, not %s", at, noun(n))
		}
	case reflect.Int:
		if number := 0; n.Tag != "!!int" || n.Decode(&number) != nil || number < 1 || number > 1_000_000 {
			d.fail(n, "%s: must be a number from 1 to 1000000", at)
		} else {
			into.SetInt(int64(number))
		}
	default:
		d.text(n, at, into)
	}
}

// is reports whether a node has a kind, and records a problem otherwise.
func (d *decoder) is(n *goyaml.Node, kind goyaml.Kind, at, what string) bool {
	if n.Kind != kind {
		d.fail(n, "%s: must be %s, not %s", at, what, noun(n))
	}
	return n.Kind == kind
}

// noun describes the type of a node, for messages.
func noun(n *goyaml.Node) string {
	switch {
	case n.Kind == goyaml.MappingNode:
		return "an object"
	case n.Kind == goyaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	case n.Tag == "!!str":
		return "a string"
	}
	return "the value " + n.Value
}

func (d *decoder) text(n *goyaml.Node, at string, into reflect.Value) {
	switch {
	case !d.is(n, goyaml.ScalarNode, at, "a string"):
	case n.Tag != "!!str":
		d.fail(n, "%s: must be a string, not %s: quote it", at, noun(n))
	case n.Value == "":
		d.fail(n, "%s: must not be empty", at)
	default:
		into.SetString(n.Value)
	}
}

func (d *decoder) duration(n *goyaml.Node, at string, into *time.Duration) {
	parsed, err := time.ParseDuration(n.Value)
	if err != nil || parsed <= 0 || parsed > time.Hour {
		d.fail(n, "%s: must be a duration of at most 1h, such as 30s or 2m", at)
		return
	}
	*into = parsed
}

func (d *decoder) pattern(n *goyaml.Node, at string, into *Pattern) {
	if !d.is(n, goyaml.ScalarNode, at, "a regular expression") {
		return
	}
	compiled, err := budget.Regexp(n.Value)
	if err != nil {
		d.fail(n, "%s: invalid regular expression: %v", at, err)
		return
	}
	into.Regexp = compiled
}

func (d *decoder) list(n *goyaml.Node, at string, into reflect.Value) {
	if !d.is(n, goyaml.SequenceNode, at, "a list") {
		return
	}
	if len(n.Content) == 0 {
		d.fail(n, "%s: must not be empty", at)
	}
	for i, item := range n.Content {
		into.Set(reflect.Append(into, reflect.Zero(into.Type().Elem())))
		d.decode(item, fmt.Sprintf("%s[%d]", at, i), into.Index(i))
	}
}

// texts decodes a map of strings, in which null is allowed.
func (d *decoder) texts(n *goyaml.Node, at string, into reflect.Value) {
	if !d.is(n, goyaml.MappingNode, at, "an object") {
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	d.pairs(n, func(key, value *goyaml.Node) {
		var content *string
		if value.Tag != "!!null" {
			if !d.is(value, goyaml.ScalarNode, at+"."+key.Value, "a string or null") {
				return
			}
			content = &value.Value
		}
		into.SetMapIndex(reflect.ValueOf(key.Value), reflect.ValueOf(content))
	})
}

// plain decodes a map of strings.
func (d *decoder) plain(n *goyaml.Node, at string, into *map[string]string) {
	if !d.is(n, goyaml.MappingNode, at, "an object") {
		return
	}
	*into = map[string]string{}
	d.pairs(n, func(key, value *goyaml.Node) {
		if d.is(value, goyaml.ScalarNode, fieldPath(at, key.Value), "a string") {
			(*into)[key.Value] = value.Value
		}
	})
}

// pairs calls visit with the keys and values of an object, and records a problem for repeated keys.
func (d *decoder) pairs(n *goyaml.Node, visit func(key, value *goyaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == goyaml.AliasNode {
			value = value.Alias
		}
		switch {
		case key.Kind != goyaml.ScalarNode || key.Tag == "!!merge":
			d.fail(key, "keys must be strings")
		case seen[key.Value]:
			d.fail(key, "%s is set twice", key.Value)
		default:
			seen[key.Value] = true
			visit(key, value)
		}
	}
}

// object decodes a struct by its field tags.
func (d *decoder) object(n *goyaml.Node, at string, into reflect.Value) {
	if position := into.FieldByName("Position"); position.IsValid() {
		position.Set(reflect.ValueOf(d.position(n)))
	}
	if !d.is(n, goyaml.MappingNode, at, "an object") {
		return
	}
	names, required := fields(into.Type())
	d.pairs(n, func(key, value *goyaml.Node) {
		field, known := names[key.Value]
		if !known {
			d.unknown(key, at, names)
			return
		}
		required = slices.DeleteFunc(required, func(name string) bool { return name == key.Value })
		d.decode(value, fieldPath(at, key.Value), into.Field(field))
	})
	for _, name := range required {
		d.fail(n, "%s is required", fieldPath(at, name))
	}
}

func fieldPath(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

// fields returns the field indices of a type by name, and the names of the required fields.
func fields(t reflect.Type) (names map[string]int, required []string) {
	names = map[string]int{}
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("field"), ",")
		if name == "" {
			continue
		}
		names[name] = i
		if option == "required" {
			required = append(required, name)
		}
	}
	return names, required
}

func (d *decoder) unknown(key *goyaml.Node, at string, names map[string]int) {
	near := hint.Nearest{Word: key.Value}
	var all []string
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	for _, name := range all {
		near.Try(name, []string{name})
	}
	hint := "use one of " + strings.Join(all, ", ")
	if best := near.Best(); best != "" {
		hint = fmt.Sprintf("did you mean %q?", best)
	}
	d.fail(key, "unknown field %q: %s", fieldPath(at, key.Value), hint)
}

// value returns a node as a JSON value. Unlike YAML, JSON has neither times nor binary data.
func (d *decoder) value(n *goyaml.Node) any {
	switch n.Kind {
	case goyaml.AliasNode:
		return d.value(n.Alias)
	case goyaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		d.pairs(n, func(key, value *goyaml.Node) { object[key.Value] = d.value(value) })
		return object
	case goyaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = d.value(item)
		}
		return list
	}
	return d.scalar(n)
}

func (d *decoder) scalar(n *goyaml.Node) any {
	var err error
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		var value bool
		if err = n.Decode(&value); err == nil {
			return value
		}
	case "!!int":
		var value int64
		if err = n.Decode(&value); err == nil {
			return value
		}
	case "!!float":
		var value float64
		if err = n.Decode(&value); err == nil && value-value == 0 { // neither infinite nor NaN
			return value
		}
		err = fmt.Errorf("not a valid JSON number")
	}
	if err != nil {
		d.fail(n, "invalid value %s", n.Value)
	}
	return n.Value
}
