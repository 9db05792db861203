package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/output"
)

// put sets a field by its dotted path, unless the value is empty: what is not
// given is left to the controllers' defaults.
func put(m map[string]any, path string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case bool:
		if !v {
			return
		}
	case time.Duration:
		if v == 0 {
			return
		}
		value = v.String()
	case []string:
		if len(v) == 0 {
			return
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		value = list
	case []any:
		if len(v) == 0 {
			return
		}
	}
	for {
		first, rest, nested := strings.Cut(path, ".")
		if !nested {
			m[path] = value
			return
		}
		below, ok := m[first].(map[string]any)
		if !ok {
			below = map[string]any{}
			m[first] = below
		}
		m, path = below, rest
	}
}

// refField is a field that refers to an object.
func refField(r input.Reference) map[string]any {
	m := map[string]any{}
	put(m, "kind", r.Kind)
	put(m, "name", r.Name)
	put(m, "namespace", r.Namespace)
	return m
}

// versions checks a range of versions.
func (c *creation) versions(flag, value string) {
	if value != "" {
		c.flagged(flag, input.Range(value))
	}
}

// positive checks a duration.
func (c *creation) positive(flags map[string]time.Duration) {
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if flags[flag] < 0 {
			c.wrong(fmt.Errorf("--%s has to be more than 0", flag))
		}
	}
}

// refer reads a reference; an empty one is none.
func (c *creation) refer(flag, value string, rules input.Rules) input.Reference {
	if value == "" {
		return input.Reference{}
	}
	ref, err := rules.Parse(value)
	c.flagged(flag, err)
	return ref
}

// depends reads a list of dependencies.
func (c *creation) depends(list []string) []any {
	var refs []any
	for _, s := range list {
		ref, err := input.Dependency(s)
		c.flagged("depends-on", err)
		refs = append(refs, refField(ref))
	}
	return refs
}

// knownFormat refuses formats that print no object.
func knownFormat(format string) error {
	if format == "wide" {
		return errors.New("output format \"wide\" is for tables: use one of json|yaml|name|jsonpath=…|go-template=…")
	}
	_, err := output.ObjectPrinter(format)
	return err
}

// pattern checks a regular expression.
func (c *creation) pattern(flag, value string) {
	if _, err := regexp.Compile(value); err != nil {
		c.wrong(fmt.Errorf("--%s: %q is no regular expression: %w", flag, value, err))
	}
}

// digest checks the digest of an artifact.
func (c *creation) digest(flag, value string) {
	if value == "" {
		return
	}
	algorithm, sum, _ := strings.Cut(value, ":")
	length := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
	if length == 0 || len(sum) != length || strings.Trim(sum, "0123456789abcdef") != "" {
		c.wrong(fmt.Errorf("--%s: %q is no digest, such as sha256: with 64 hexadecimal digits", flag, value))
	}
}
