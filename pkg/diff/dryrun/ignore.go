package dryrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// rule is an entry of spec.ignore: fields that do not count as drift.
type rule struct {
	paths  []pointer
	target *selector
}

// pointer is a parsed RFC 6901 path.
type pointer []string

func parsePointer(s string) (pointer, error) {
	if s == "" {
		return nil, nil // the whole object
	}
	if !strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("path %q does not begin with a slash", s)
	}
	steps := strings.Split(s[1:], "/")
	for i, step := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return steps, nil
}

// without returns v without the field. Maps are changed in place, lists are copied.
func (p pointer) without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		below, ok := v[p[0]]
		switch {
		case !ok:
		case len(p) == 1:
			delete(v, p[0])
		default:
			v[p[0]] = p[1:].without(below)
		}
		return v
	case []any:
		i, err := strconv.Atoi(p[0])
		if err != nil || i < 0 || i >= len(v) {
			return v
		}
		if len(p) == 1 {
			return append(append([]any{}, v[:i]...), v[i+1:]...)
		}
		v[i] = p[1:].without(v[i])
		return v
	default:
		return v
	}
}

// selector is a target as in kustomize: regular expressions that match whole names, and label
// selectors.
type selector struct {
	names               map[string]*regexp.Regexp
	labels, annotations labels.Selector
}

func rulesOf(owner map[string]any, at string) ([]rule, error) {
	list, _ := controllers.Path{at}.Lookup(owner)
	items, _ := list.([]any)
	var rules []rule
	for _, item := range items {
		r, err := ruleOf(item)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func ruleOf(item any) (rule, error) {
	var spec struct {
		Paths  []string
		Target *struct{ Group, Version, Kind, Name, Namespace, LabelSelector, AnnotationSelector string }
	}
	data, err := json.Marshal(item)
	if err != nil {
		return rule{}, err
	}
	if err := json.Unmarshal(data, &spec); err != nil {
		return rule{}, err
	}
	var r rule
	for _, path := range spec.Paths {
		p, err := parsePointer(path)
		if err != nil {
			return rule{}, err
		}
		r.paths = append(r.paths, p)
	}
	if t := spec.Target; t != nil {
		r.target, err = newSelector(map[string]string{
			"group": t.Group, "version": t.Version, "kind": t.Kind, "name": t.Name, "namespace": t.Namespace,
		}, t.LabelSelector, t.AnnotationSelector)
	}
	return r, err
}

func newSelector(names map[string]string, labelSelector, annotationSelector string) (*selector, error) {
	s := &selector{names: map[string]*regexp.Regexp{}}
	var failed []error
	for field, pattern := range names {
		if pattern == "" {
			continue
		}
		expression, err := budget.Regexp("^(?:" + strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$") + ")$")
		failed = append(failed, err)
		s.names[field] = expression
	}
	var err error
	s.labels, err = labels.Parse(labelSelector)
	failed = append(failed, err)
	s.annotations, err = labels.Parse(annotationSelector)
	return s, errors.Join(append(failed, err)...)
}

func (s *selector) matches(ref controllers.VersionedID, o map[string]any) bool {
	if s == nil {
		return true
	}
	values := map[string]string{"group": ref.Group, "version": ref.Version, "kind": ref.Kind, "name": ref.Name, "namespace": ref.Namespace}
	for field, expression := range s.names {
		if !expression.MatchString(values[field]) {
			return false
		}
	}
	return s.labels.Matches(labels.Set(policy.TextMap(o, "metadata", "labels"))) &&
		s.annotations.Matches(labels.Set(policy.TextMap(o, "metadata", "annotations")))
}

// ignore removes the ignored fields from both objects. Like the controller, it matches rules
// against the desired object.
func (p *plan) ignore(ref controllers.VersionedID, before, after map[string]any) {
	for _, r := range p.rules {
		if !r.target.matches(ref, after) {
			continue
		}
		for _, path := range r.paths {
			if len(path) > 0 {
				path.without(before)
				path.without(after)
			}
		}
	}
}

// ignores reports whether a rule ignores the whole object.
func (p *plan) ignores(ref controllers.VersionedID, o map[string]any) bool {
	for _, r := range p.rules {
		if slices.ContainsFunc(r.paths, func(path pointer) bool { return len(path) == 0 }) && r.target.matches(ref, o) {
			return true
		}
	}
	return false
}
