package logs

import (
	"slices"
	"strings"
)

// Levels are the levels of a log, from the least to the most important.
func Levels() []string { return []string{"debug", "info", "error"} }

// Filter says which lines are shown.
type Filter struct {
	// Name and Namespace are those of the object that a line is about, "" for any.
	Name, Namespace string
	// Kinds are the kinds of the objects, nil for any.
	Kinds []string
	// Level is the least important level that is shown.
	Level string
	// Objects are the objects that lines have to be about, as [Key] writes
	// them; nil for any.
	Objects map[string]bool
}

// Key is an object among those of a Filter.
func Key(kind, namespace, name string) string {
	return strings.ToLower(kind) + "/" + namespace + "/" + name
}

// Shows tells whether the filter lets a line through. Text that is no record
// speaks of the controller as a whole: what of it is an error is shown unless
// an object or a kind is asked for.
func (f Filter) Shows(e *Entry) bool {
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

// rank orders levels; a word that nobody knows is shown like what is important.
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
