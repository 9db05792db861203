package kube

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fluxkit/flux/internal/budget"
)

// Most of a long list is data that tables do not show: managedFields, inventories, Helm values. encoding/json would
// decode all of it, so lists are read token by token, and omitted fields are skipped. Repeated strings share memory,
// for up to remembered different strings of at most repeatable bytes.
const (
	repeatable = 40
	remembered = 2048
	// memoryEvery is the number of values after which the memory is checked.
	memoryEvery = 1024
)

// stream decodes JSON values while it reads them.
type stream struct {
	tokens  *jsontext.Decoder
	known   map[string]string
	scratch []byte
	values  int
}

func newStream(from io.Reader) *stream {
	// Accept the same input as encoding/json.
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	return &stream{tokens: jsontext.NewDecoder(from, lenient...), known: map[string]string{}}
}

// take reads a token of the given kind.
func (s *stream) take(want jsontext.Kind) error {
	token, err := s.tokens.ReadToken()
	if err != nil {
		return cut(err)
	}
	if token.Kind() != want {
		return fmt.Errorf("unexpected %s at byte %d, expected %s", token.Kind(), s.tokens.InputOffset(), want)
	}
	return nil
}

// cut replaces io.EOF within a value with io.ErrUnexpectedEOF.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *stream) skip() error { return cut(s.tokens.SkipValue()) }

// elements calls one for each element of an object or list.
func (s *stream) elements(open, end jsontext.Kind, one func() error) error {
	if err := s.take(open); err != nil {
		return err
	}
	for s.tokens.PeekKind() != end {
		if err := one(); err != nil {
			return err
		}
	}
	return s.take(end)
}

// fields calls field with every name of an object; field must read the value.
func (s *stream) fields(field func(name string) error) error {
	return s.elements('{', '}', func() error {
		name, err := s.text()
		if err != nil {
			return err
		}
		return field(name)
	})
}

// items calls one for each element of a list, which may be null.
func (s *stream) items(one func() error) error {
	if s.tokens.PeekKind() == 'n' {
		return s.skip()
	}
	return s.elements('[', ']', one)
}

func (s *stream) object(without pruned) (map[string]any, error) {
	o := map[string]any{}
	return o, s.fields(func(name string) error {
		below, named := without[name]
		if named && below == nil {
			return s.skip()
		}
		v, err := s.value(below)
		o[name] = v
		return err
	})
}

// value decodes a value in the same way as Kubernetes: integers become int64.
func (s *stream) value(without pruned) (any, error) {
	if s.values++; s.values%memoryEvery == 0 {
		if err := budget.Memory(""); err != nil {
			return nil, err
		}
	}
	switch s.tokens.PeekKind() {
	case '{':
		return s.object(without)
	case '[':
		list := []any{}
		err := s.elements('[', ']', func() error {
			v, err := s.value(without)
			list = append(list, v)
			return err
		})
		return list, err
	case '"':
		return s.text()
	}
	token, err := s.tokens.ReadToken()
	if err != nil {
		return nil, cut(err)
	}
	switch token.Kind() {
	case 't', 'f':
		return token.Bool(), nil
	case '0':
		if i, err := strconv.ParseInt(token.String(), 10, 64); err == nil {
			return i, nil
		}
		return strconv.ParseFloat(token.String(), 64)
	default:
		return nil, nil
	}
}

// text reads a string.
func (s *stream) text() (string, error) {
	raw, err := s.tokens.ReadValue()
	if err != nil {
		return "", cut(err)
	}
	if raw.Kind() != '"' {
		return "", fmt.Errorf("unexpected %s at byte %d, expected a string", raw.Kind(), s.tokens.InputOffset())
	}
	// Invalid UTF-8 is replaced and reported as an error, which can be ignored.
	if s.scratch, err = jsontext.AppendUnquote(s.scratch[:0], raw); err != nil && len(s.scratch) == 0 {
		return "", err
	}
	return s.once(s.scratch), nil
}

// once returns a string. Equal short strings share memory.
func (s *stream) once(raw []byte) string {
	if len(raw) > repeatable {
		return string(raw)
	}
	if known, ok := s.known[string(raw)]; ok {
		return known
	}
	text := string(raw)
	if len(s.known) < remembered {
		s.known[text] = text
	}
	return text
}

// pruned is a tree of object fields that are not decoded: a nil entry omits the field, any other
// entry applies to its children.
type pruned map[string]pruned

// prune returns the tree of dotted paths such as "status.inventory".
func prune(paths []string) pruned {
	root := pruned{}
	for _, path := range paths {
		at := root
		steps := strings.Split(path, ".")
		for _, step := range steps[:len(steps)-1] {
			if _, ok := at[step]; !ok {
				at[step] = pruned{}
			}
			if at = at[step]; at == nil {
				break // a parent is already omitted
			}
		}
		if at != nil {
			at[steps[len(steps)-1]] = nil
		}
	}
	return root
}

// remove removes the fields from a decoded value.
func (p pruned) remove(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range p {
			if below == nil {
				delete(v, name)
			} else {
				below.remove(v[name])
			}
		}
	case []any:
		for _, element := range v {
			p.remove(element)
		}
	}
}
