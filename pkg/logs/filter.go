package logs

import (
	"slices"
	"strings"
)

// Levels returns the log levels, from the least to the most important.
func Levels() []string { return []string{"debug", "info", "error"} }

// Filter selects lines.
type Filter struct {
	// Name and Namespace select the object that a line is about, "" for any.
	Name, Namespace string
	// Kinds lists the kinds of objects to select, nil for any.
	Kinds []string
	// Level is the lowest log level to select.
	Level string
	// Objects holds the objects to select, by [Key]; nil for any.
	Objects map[string]bool
}

// Key returns the key of an object in a Filter.
func Key(kind, namespace, name string) string {
	return strings.ToLower(kind) + "/" + namespace + "/" + name
}

// Matches reports whether the filter selects a line. Text lines concern the controller as a whole:
// error lines match unless the filter selects an object or a kind.
func (f Filter) Matches(e *Entry) bool {
	if rank(e.Level) < rank(f.Level) {
		return false
	}
	if e.Plain {
		return f.Kinds == nil && f.Name == "" && f.Objects == nil && (f.Namespace == "" || e.Level == "error")
	}
	switch {
	case f.Kinds != nil && !slices.ContainsFunc(f.Kinds, func(kind string) bool { return strings.EqualFold(kind, e.Kind) }):
		return false
	case f.Name != "" && !strings.EqualFold(f.Name, e.Name):
		return false
	case f.Namespace != "" && !strings.EqualFold(f.Namespace, e.Namespace):
		return false
	}
	return f.Objects == nil || f.Objects[Key(e.Kind, e.Namespace, e.Name)]
}

// rank orders levels. An unknown level is as important as an error.
func rank(level string) int {
	switch strings.ToLower(level) {
	case "", "trace":
		return 0
	case "debug":
		return 1
	case "info":
		return 2
	default:
		return 3
	}
}
