package kube

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// A list of a thousand objects is mostly what no table shows: managedFields,
// inventories, Helm values. encoding/json would build all of it, so lists are
// read token by token, and what is not wanted is stepped over without decoding
// it. Of the texts that every object repeats, one copy is kept: up to
// repeatable bytes each, and up to remembered of them.
const (
	repeatable = 40
	remembered = 2048
)

// stream reads JSON values as they arrive.
type stream struct {
	tokens  *jsontext.Decoder
	known   map[string]string
	scratch []byte
}

func newStream(from io.Reader) *stream {
	// As encoding/json takes it: what the API server says is not judged here.
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	return &stream{tokens: jsontext.NewDecoder(from, lenient...), known: map[string]string{}}
}

// take reads a token that has to be of a kind.
func (s *stream) take(want jsontext.Kind) error {
	token, err := s.tokens.ReadToken()
	if err != nil {
		return cut(err)
	}
	if token.Kind() != want {
		return fmt.Errorf("unexpected %s at byte %d, where %s should be", token.Kind(), s.tokens.InputOffset(), want)
	}
	return nil
}

// cut tells an answer that ended early from one that was whole.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *stream) skip() error { return cut(s.tokens.SkipValue()) }

// elements calls one before each element of an object or list.
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

// fields calls field with every name of an object; field has to take the value.
func (s *stream) fields(field func(name string) error) error {
	return s.elements('{', '}', func() error {
		name, err := s.text()
		if err != nil {
			return err
		}
		return field(name)
	})
}

// items calls one before each element of a list, which may be null.
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

// value decodes as Kubernetes does: whole numbers are int64.
func (s *stream) value(without pruned) (any, error) {
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

// text takes a string.
func (s *stream) text() (string, error) {
	raw, err := s.tokens.ReadValue()
	if err != nil {
		return "", cut(err)
	}
	if raw.Kind() != '"' {
		return "", fmt.Errorf("unexpected %s at byte %d, where a text should be", raw.Kind(), s.tokens.InputOffset())
	}
	// Invalid UTF-8 is an error here too, after it has been replaced.
	if s.scratch, err = jsontext.AppendUnquote(s.scratch[:0], raw); err != nil && len(s.scratch) == 0 {
		return "", err
	}
	return s.once(s.scratch), nil
}

// once returns the text of the bytes, the same memory for what repeats.
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
