package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A list of a thousand objects is mostly what no table shows: managedFields,
// inventories, Helm values. encoding/json would build all of it, so lists are
// read by this stream, which steps over what is not wanted without decoding it
// and keeps one copy of the texts that every object repeats.
const (
	bufferSize = 64 << 10
	// deepest is where encoding/json gives up too.
	deepest = 10000
	// Texts up to repeatable bytes are kept once; remembered bounds how many.
	repeatable = 40
	remembered = 2048
)

// stream reads JSON values as they arrive.
type stream struct {
	from  io.Reader
	buf   []byte
	pos   int // of the next byte in buf
	read  int64
	known map[string]string
	depth int
}

func newStream(from io.Reader) *stream {
	return &stream{from: from, buf: make([]byte, 0, bufferSize), known: map[string]string{}}
}

// fill replaces the buffer, all of which was taken.
func (s *stream) fill() error {
	s.read += int64(len(s.buf))
	s.pos, s.buf = 0, s.buf[:0]
	for range 100 {
		n, err := s.from.Read(s.buf[:cap(s.buf)])
		if n > 0 {
			s.buf = s.buf[:n]
			return nil
		}
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// next returns the first byte that is not white space and stays there.
func (s *stream) next() (byte, error) {
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\n', '\r':
			default:
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

func (s *stream) unexpected(c byte, wanted string) error {
	return fmt.Errorf("unexpected %q at byte %d, where %s should be", c, s.read+int64(s.pos), wanted)
}

func (s *stream) expect(want byte) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c != want {
		return s.unexpected(c, strconv.QuoteRune(rune(want)))
	}
	s.pos++
	return nil
}

// elements calls one before each element of an object or list, the opening
// bracket of which comes next.
func (s *stream) elements(open, end byte, one func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > deepest {
		return errors.New("the answer is nested too deeply")
	}
	defer func() { s.depth-- }()
	c, err := s.next()
	if err != nil {
		return err
	}
	if c == end {
		s.pos++
		return nil
	}
	for {
		if err := one(); err != nil {
			return err
		}
		c, err := s.next()
		if err != nil {
			return err
		}
		if c != end && c != ',' {
			return s.unexpected(c, "a comma or "+strconv.QuoteRune(rune(end)))
		}
		s.pos++
		if c == end {
			return nil
		}
	}
}

// fields calls field with every name of an object; field has to take the value.
func (s *stream) fields(field func(name string) error) error {
	return s.elements('{', '}', func() error {
		name, err := s.text()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return field(name)
	})
}

// items calls one before each element of a list, which may be null.
func (s *stream) items(one func() error) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c == 'n' {
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
	c, err := s.next()
	if err != nil {
		return nil, err
	}
	switch c {
	case '{':
		return s.object(without)
	case '[':
		list := []any{}
		err := s.elements('[', ']', func() error {
			v, err := s.value(nil)
			list = append(list, v)
			return err
		})
		return list, err
	case '"':
		return s.text()
	default:
		return s.literal()
	}
}

func (s *stream) literal() (any, error) {
	token, err := s.bare()
	if err != nil {
		return nil, err
	}
	switch string(token) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if i, err := strconv.ParseInt(string(token), 10, 64); err == nil && json.Valid(token) {
		return i, nil
	}
	var f float64
	if err := json.Unmarshal(token, &f); err != nil {
		return nil, fmt.Errorf("%q at byte %d is no JSON value", token, s.read+int64(s.pos))
	}
	return f, nil
}

// bare takes a number, true, false or null.
func (s *stream) bare() ([]byte, error) {
	var token []byte
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			switch c := s.buf[s.pos]; c {
			case ',', '}', ']', ':', ' ', '\t', '\n', '\r', '"', '{', '[':
				if len(token) == 0 {
					return nil, s.unexpected(c, "a value")
				}
				return token, nil
			default:
				token = append(token, c)
			}
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// text takes a string.
func (s *stream) text() (string, error) {
	c, err := s.next()
	if err != nil {
		return "", err
	}
	if c != '"' {
		return "", s.unexpected(c, "a string")
	}
	s.pos++
	// Nearly every string is whole in the buffer and has no escape.
	if i := bytes.IndexByte(s.buf[s.pos:], '"'); i >= 0 {
		raw := s.buf[s.pos : s.pos+i]
		if plain(raw) {
			s.pos += i + 1
			return s.once(raw), nil
		}
	}
	raw := []byte{'"'}
	if err := s.quoted(func(part []byte) { raw = append(raw, part...) }); err != nil {
		return "", err
	}
	var decoded string
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return "", fmt.Errorf("a string before byte %d: %w", s.read+int64(s.pos), err)
	}
	return decoded, nil
}

func plain(raw []byte) bool {
	for _, c := range raw {
		if c < ' ' || c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
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

// quoted takes the rest of a string, the opening quote of which was taken,
// and the closing one.
func (s *stream) quoted(part func([]byte)) error {
	escaped := false
	for {
		for start := s.pos; s.pos < len(s.buf); s.pos++ {
			switch c := s.buf[s.pos]; {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				s.pos++
				part(s.buf[start:s.pos])
				return nil
			}
			if s.pos == len(s.buf)-1 {
				part(s.buf[start:])
			}
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}
