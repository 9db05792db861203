package kube

import (
	"bytes"
	"strings"
)

// pruned says which fields of an object to step over: a nil entry drops the
// field, another one leads to the fields below.
type pruned map[string]pruned

// prune makes the tree of dotted paths such as "status.inventory".
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
				break // a field above is dropped already
			}
		}
		if at != nil {
			at[steps[len(steps)-1]] = nil
		}
	}
	return root
}

// skip steps over a value. It looks only for its end: what is not shown need
// not be checked.
func (s *stream) skip() error {
	for depth := 0; ; {
		c, err := s.next()
		if err != nil {
			return err
		}
		switch c {
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case '"':
			s.pos++
			if err := s.skipText(); err != nil {
				return err
			}
		case ',', ':':
			if depth == 0 {
				return s.unexpected(c, "a value")
			}
			s.pos++
			continue
		default:
			if _, err := s.bare(); err != nil {
				return err
			}
		}
		if depth < 0 {
			return s.unexpected(c, "a value")
		}
		if depth == 0 {
			return nil
		}
	}
}

// skipText is quoted for what is not wanted, a word at a time where it can.
func (s *stream) skipText() error {
	if i := bytes.IndexByte(s.buf[s.pos:], '"'); i >= 0 && bytes.IndexByte(s.buf[s.pos:s.pos+i], '\\') < 0 {
		s.pos += i + 1
		return nil
	}
	return s.quoted(func([]byte) {})
}
