package failure

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Field is a field that the API server does not accept.
type Field struct {
	// Path is where it is in the object, as in spec.ports[0].port; "" says that
	// it is the object itself.
	Path string
	// Problem is the API's name for what is wrong, as in "Invalid value".
	Problem string
	// Value is what the field has, and Detail why that is not accepted.
	Value, Detail string
}

// String returns the field as the API server writes it.
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

// immutable are the details by which the validation of Kubernetes says that a
// field cannot be changed; those that go on end with the fields that can be.
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

// Immutable reports whether the field has a value that is valid, and not the
// one that the object was created with.
func (f Field) Immutable() bool {
	if f.Problem != "Invalid value" && f.Problem != "Forbidden" {
		return false
	}
	return slices.Contains(immutable, f.Detail) || slices.ContainsFunc(immutableBut, func(s string) bool { return strings.HasPrefix(f.Detail, s) })
}

// Immutable reports whether nothing but fields that cannot be changed stand
// against an object: creating it again would be accepted.
func (f Failure) Immutable() bool {
	return f.Type == Invalid && len(f.Fields) > 0 && !slices.ContainsFunc(f.Fields, func(field Field) bool { return !field.Immutable() })
}

// fieldStart is a path and the API's name of a problem.
var fieldStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(<nil>|[A-Za-z_$][\w$-]*(?:\.[\w$-]+|\[[^\]\n]*\])*): ` +
		`(Invalid value|Required value|Unsupported value|Duplicate value|Forbidden|Too long|Too many|Not found|Internal error)(: |, |\]|$)`)
})

// valued are the problems that are followed by the value.
var valued = []string{"Invalid value", "Unsupported value", "Duplicate value", "Too many", "Not found"}

// mostFields bounds how many fields are read of one error.
const mostFields = 50

// fields reads one field error, or several in brackets.
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

// field reads the first field error of s, and returns what follows it.
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

// value returns the length of the value that s begins with.
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

// balanced returns the length of a value in brackets, 0 where they do not match.
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

// detail returns the length of the explanation that s begins with. That of one
// error of several ends where the next one begins.
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
