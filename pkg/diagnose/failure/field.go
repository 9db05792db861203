package failure

import (
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
)

// Field is a field that the API server rejects.
type Field struct {
	// Path is the path in the object, such as spec.ports[0].port, or "" for the object itself.
	Path string
	// Problem is the error type of the API, such as "Invalid value".
	Problem string
	// Value is the rejected value. Detail is the reason.
	Value, Detail string
}

// String returns the error in the format of the API server.
func (f Field) String() string {
	parts := []string{f.Path, f.Problem}
	if f.Value != "" {
		parts = append(parts, f.Value)
	}
	if f.Detail != "" {
		parts = append(parts, f.Detail)
	}
	return strings.Join(parts, ": ")
}

// immutable lists the details of Kubernetes validation for immutable fields. immutableBut
// lists prefixes of details that end with the mutable fields.
var (
	immutable = []string{
		"field is immutable", "field is immutable once set", "may not change once set", "may not be changed once set", "cannot change roleRef",
		"field is immutable when `immutable` is set", "field cannot be changed once set",
	}
	immutableBut = []string{
		"updates to statefulset spec for fields other than ", "spec is immutable after creation except ", "pod updates may not change fields other than ",
		"spec.persistentvolumesource is immutable after creation",
	}
)

// Immutable reports whether the error is a change of an immutable field.
func (f Field) Immutable() bool {
	if f.Problem != "Invalid value" && f.Problem != "Forbidden" {
		return false
	}
	return slices.Contains(immutable, f.Detail) || slices.ContainsFunc(immutableBut, func(s string) bool { return strings.HasPrefix(f.Detail, s) })
}

// Immutable reports whether all errors are changes of immutable fields, so that recreating the object would succeed.
func (f Failure) Immutable() bool {
	return f.Type == Invalid && len(f.Fields) > 0 && !slices.ContainsFunc(f.Fields, func(field Field) bool { return !field.Immutable() })
}

// fieldStart matches a path and the error type of the API.
var fieldStart = lazy.Regexp(`^(<nil>|[A-Za-z_$][\w$-]*(?:\.[\w$-]+|\[[^\]\n]*\])*): ` +
	`(Invalid value|Required value|Unsupported value|Duplicate value|Forbidden|Too long|Too many|Not found|Internal error)(: |, |\]|$)`)

// valued lists the error types that are followed by the value.
var valued = []string{"Invalid value", "Unsupported value", "Duplicate value", "Too many", "Not found"}

// mostFields is the maximum number of fields to parse from one error.
const mostFields = 50

// fields parses one field error, or several in brackets.
func fields(s string) ([]Field, bool) {
	several := strings.HasPrefix(s, "[")
	s = strings.TrimPrefix(s, "[")
	var all []Field
	for len(all) < mostFields {
		f, rest, ok := field(s, several)
		if !ok {
			return nil, false
		}
		all = append(all, f)
		var more bool
		if s, more = strings.CutPrefix(rest, ", "); !more {
			break
		}
	}
	return all, true
}

// field parses the first field error of s and returns the rest.
func field(s string, several bool) (f Field, rest string, ok bool) {
	m := fieldStart().FindStringSubmatch(s)
	if m == nil {
		return Field{}, "", false
	}
	f = Field{Path: strings.TrimPrefix(m[1], "<nil>"), Problem: m[2]}
	rest = s[len(m[0])-len(m[3]):]
	if m[3] != ": " {
		return f, rest, true
	}
	rest = rest[2:]
	if slices.Contains(valued, f.Problem) {
		n := value(rest)
		f.Value, rest = rest[:n], rest[n:]
		var more bool
		if rest, more = strings.CutPrefix(rest, ": "); !more {
			return f, rest, true
		}
	}
	n := detail(rest, several)
	f.Detail, rest = strings.TrimSpace(rest[:n]), rest[n:]
	return f, rest, true
}

// value returns the length of the value at the start of s.
func value(s string) int {
	for i := 0; i < len(s); i++ {
		n := quoted(s, i)
		if n == 0 && (s[i] == '{' || s[i] == '[') {
			n = balanced(s[i:])
		}
		if n > 0 {
			i += n - 1
			continue
		}
		if s[i] == '\n' || s[i] == ']' || strings.HasPrefix(s[i:], ": ") || strings.HasPrefix(s[i:], ", ") {
			return i
		}
	}
	return len(s)
}

// balanced returns the length of a value in brackets, or 0 if the brackets do not match.
func balanced(s string) int {
	depth := 0
	for i := 0; i < min(len(s), longestValue); i++ {
		if n := quoted(s, i); n > 0 {
			i += n - 1
			continue
		}
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// detail returns the length of the explanation at the start of s. In a list, it ends before the next error.
func detail(s string, several bool) int {
	for i := 0; i < len(s); i++ {
		if n := quoted(s, i); n > 0 {
			i += n - 1
			continue
		}
		switch {
		case s[i] == '\n':
			return i
		case several && s[i] == ']' && strings.TrimSpace(s[i+1:]) == "":
			return i
		case several && strings.HasPrefix(s[i:], ", ") && fieldStart().MatchString(s[i+2:]):
			return i
		case several && s[i] == ']' && s[i+1] == '\n':
			return i
		}
	}
	return len(s)
}
