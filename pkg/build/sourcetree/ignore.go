package sourcetree

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore/gitignore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Ignore contains the patterns in spec.ignore of a source. Source is empty if it is not known.
type Ignore struct{ Patterns, Source string }

// IgnoreOf returns the patterns in spec.ignore of a source, which may be nil.
func IgnoreOf(source *unstructured.Unstructured) Ignore {
	if source == nil {
		return Ignore{}
	}
	return Ignore{controllers.Path{"spec.ignore"}.String(source.Object), controllers.IDOf(source.Object).String()}
}

func (i Ignore) field() string {
	if i.Source == "" {
		return "spec.ignore"
	}
	return "spec.ignore of " + i.Source
}

// Rule is a pattern that excludes files from an artifact or includes them again.
type Rule struct {
	pattern gitignore.Pattern
	text    string
	// in is the file or field that contains the pattern, or "" for a default pattern. line is its line there.
	in   string
	line int
}

// String returns the rule for messages.
func (r Rule) String() string {
	if r.in == "" {
		return fmt.Sprintf("the default pattern %q of source-controller", r.text)
	}
	return fmt.Sprintf("line %d (%.100q) of %s", r.line, r.text, r.in)
}

// ReadRules returns the patterns in a text, as sourceignore.ReadPatterns does, with their lines. in is the file or field with
// the text.
func ReadRules(text string, domain []string, in string) []Rule {
	var rules []Rule
	lines := bufio.NewScanner(strings.NewReader(text))
	for line := 1; lines.Scan(); line++ {
		if pattern := lines.Text(); !strings.HasPrefix(pattern, "#") && strings.TrimSpace(pattern) != "" {
			rules = append(rules, Rule{gitignore.ParsePattern(pattern, domain), pattern, in, line})
		}
	}
	return rules
}

// defaults returns the rules for source-controller's lists of default patterns.
func defaults(lists ...string) []Rule {
	var rules []Rule
	for _, list := range lists {
		for pattern := range strings.SplitSeq(list, ",") {
			rules = append(rules, Rule{pattern: gitignore.ParsePattern(pattern, nil), text: pattern})
		}
	}
	return rules
}

// Excluding returns the rule that excludes a path: the last one that matches the path, if it does not include the path again.
func Excluding(rules []Rule, name string, isDir bool) (Rule, bool) {
	parts := strings.Split(name, "/")
	for _, rule := range slices.Backward(rules) {
		if match := rule.pattern.Match(parts, isDir); match != gitignore.NoMatch {
			return rule, match == gitignore.Exclude
		}
	}
	return Rule{}, false
}

// excludedError is returned for a file or directory that is in the source but not in its artifact.
type excludedError struct {
	name  string
	rules []string
}

func (e *excludedError) Error() string { return e.name + " is " + e.problem() }

func (e *excludedError) problem() string {
	return "excluded from the artifact by " + budget.List(e.rules, 3)
}

// IsExcluded reports whether a file was not found in an artifact because a rule excludes it.
func IsExcluded(err error) bool {
	var excluded *excludedError
	return errors.As(err, &excluded)
}

// Is reports whether target is fs.ErrNotExist.
func (e *excludedError) Is(target error) bool { return target == fs.ErrNotExist }

// missing returns why a path is not in an artifact. It keeps other errors of the original tree, such as those for
// symbolic links.
func missing(parts []Part, rules []Rule, name string) error {
	err := fs.ErrNotExist
	for _, part := range parts {
		inside, ok := part.original(name)
		if !ok {
			continue
		}
		_, statErr := fs.Stat(part.Tree, inside)
		var located *fs.PathError
		if errors.As(statErr, &located) {
			err = located.Err
		} else if excluded := part.excluding(rules, inside, name); statErr == nil && len(excluded) > 0 {
			return &excludedError{name, excluded}
		}
	}
	return err
}

// original returns the path in the part's tree for a path in the source.
func (p Part) original(name string) (string, bool) {
	if at := Clean(p.At); at != "." && name != at {
		rest, ok := strings.CutPrefix(name, at+"/")
		return path.Join(Clean(p.From), rest), ok
	} else if name == at {
		return Clean(p.From), true
	}
	return path.Join(Clean(p.From), name), true
}

// excluding returns the rules that exclude a file, or the files of a directory. name is its path in the source.
func (p Part) excluding(rules []Rule, inside, name string) []string {
	var found []string
	_ = fs.WalkDir(p.Tree, inside, func(file string, entry fs.DirEntry, err error) error { // without a rule, the file does not exist
		if err != nil || entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		to := path.Join(name, file)
		if inside != "." {
			to = name + strings.TrimPrefix(file, inside)
		}
		rule, excluded := Excluding(rules, to, false)
		text := rule.String()
		if !p.includes(to) {
			excluded, text = true, "spec.sparseCheckout"
		}
		if excluded && !slices.Contains(found, text) {
			found = append(found, text)
		}
		return nil
	})
	return found
}
