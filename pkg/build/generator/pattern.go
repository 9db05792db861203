package generator

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
)

var placeholder = lazy.Regexp(`\{([^{}]*)\}`)

// expand returns the artifacts for spec.pathPattern: the artifacts in the spec
// for each source directory that the pattern matches.
func (g *Generator) expand(sources Sources) ([]artifact, error) {
	tree, pattern, err := g.source(g.pathPattern, sources)
	if err != nil {
		return nil, err
	}
	matcher, err := matcherOf(pattern)
	if err != nil {
		return nil, err
	}
	var all []artifact
	from := map[string]string{}
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		values := matcher.FindStringSubmatch(name)
		if values == nil {
			return nil
		}
		captured := map[string]string{}
		for i, key := range matcher.SubexpNames()[1:] {
			captured[key] = values[i+1]
		}
		for _, a := range g.artifacts {
			if len(all) == maxArtifacts {
				return &budget.ExceededError{Name: name, Fact: fmt.Sprintf("the generator has more than %d artifacts", maxArtifacts)}
			}
			filled, err := a.fill(captured)
			if err != nil {
				return fmt.Errorf("artifact %q for %s: %w", a.Name, name, err)
			}
			if other, twice := from[filled.Name]; twice {
				return fmt.Errorf("%s and %s have the same artifact name %q", other, name, filled.Name)
			}
			from[filled.Name] = name
			all = append(all, filled)
		}
		return nil
	})
	return all, err
}

// matcherOf returns an expression in which each placeholder matches one path
// element.
func matcherOf(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("^")
	at := 0
	known := map[string]bool{}
	for _, found := range placeholder().FindAllStringSubmatchIndex(pattern, -1) {
		name := pattern[found[2]:found[3]]
		if known[name] {
			return nil, fmt.Errorf("duplicate placeholder {%s}", name)
		}
		known[name] = true
		b.WriteString(regexp.QuoteMeta(pattern[at:found[0]]) + "(?P<" + name + ">[^/]+)")
		at = found[1]
	}
	b.WriteString(regexp.QuoteMeta(pattern[at:]) + "$")
	if strings.ContainsAny(placeholder().ReplaceAllString(pattern, ""), "{}") {
		return nil, errors.New("unbalanced braces")
	}
	return budget.Regexp(b.String())
}

// fill replaces the placeholders of an artifact. It converts artifact names to
// lower case, and does not change paths.
func (a artifact) fill(values map[string]string) (artifact, error) {
	lower := map[string]string{}
	for key, value := range values {
		lower[key] = strings.ToLower(value)
	}
	filled := artifact{}
	var err error
	if filled.Name, err = replaced(a.Name, lower); err != nil {
		return filled, err
	}
	if problems := validation.IsDNS1123Subdomain(filled.Name); len(problems) > 0 {
		return filled, fmt.Errorf("invalid name %q: %s", filled.Name, problems[0])
	}
	for _, o := range a.Copy {
		if o.From, err = replaced(o.From, values); err != nil {
			return filled, err
		}
		if o.To, err = replaced(o.To, values); err != nil {
			return filled, err
		}
		filled.Copy = append(filled.Copy, o)
	}
	return filled, nil
}

func replaced(text string, values map[string]string) (string, error) {
	var unknown string
	text = placeholder().ReplaceAllStringFunc(text, func(found string) string {
		value, ok := values[strings.Trim(found, "{}")]
		if !ok {
			unknown = found
		}
		return value
	})
	if unknown != "" {
		return "", fmt.Errorf("pathPattern has no placeholder %s", unknown)
	}
	return text, nil
}
