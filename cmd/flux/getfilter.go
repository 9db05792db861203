package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// keeps tells whether the filters let an object through: all that are given.
func (q *query) keeps(k controllers.Kind, o controllers.Object) bool {
	ready := k.Ready(o).Status
	if q.options.suspended && !k.Suspension.Is(o) || q.options.notReady && ready == "True" || q.options.failed && !failed(k, o) {
		return false
	}
	if _, stalled := controllers.Stalled(o); q.options.stalled && !stalled {
		return false
	}
	return q.status.matches(k, o)
}

// failed tells whether a controller has said that the object is not ready. One
// that no controller has looked at has not failed yet.
func failed(k controllers.Kind, o controllers.Object) bool {
	c, ok := controllers.FindCondition(o, "Ready")
	return ok && c.Status == "False" && k.Ready(o).Status == "False"
}

// statusSelector selects objects by a condition: type=status or type!=status.
type statusSelector struct {
	typ, status string
	negated     bool
}

func parseStatusSelector(s string) (statusSelector, error) {
	if s == "" {
		return statusSelector{}, nil
	}
	for _, operator := range []string{"!=", "="} {
		if typ, status, ok := strings.Cut(s, operator); ok && typ != "" && status != "" && !strings.Contains(status, "=") {
			selector := statusSelector{typ, status, operator == "!="}
			return selector, selector.check()
		}
	}
	return statusSelector{}, fmt.Errorf("expected status selector in type=status or type!=status format, but found: %s", s)
}

// check refuses a condition and a status that no object ever has.
func (s statusSelector) check() error {
	types := controllers.ConditionTypes()
	if !slices.ContainsFunc(types, func(known string) bool { return strings.EqualFold(known, s.typ) }) {
		near := nearest{word: strings.ToLower(s.typ)}
		for _, known := range types {
			near.try(known, []string{strings.ToLower(known)})
		}
		hint := "the conditions are " + strings.Join(types, ", ")
		if known := near.meant(); known != "" {
			hint = fmt.Sprintf("did you mean %s?", known)
		}
		return hinted(hint, "--status-selector: unknown condition %q", s.typ)
	}
	if !slices.Contains([]string{"true", "false", "unknown"}, strings.ToLower(s.status)) {
		return fmt.Errorf("--status-selector: invalid status %q: must be true, false or unknown", s.status)
	}
	return nil
}

// matches compares as the READY column shows it. An object without the
// condition has no status, which is different from any.
func (s statusSelector) matches(k controllers.Kind, o controllers.Object) bool {
	if s.typ == "" {
		return true
	}
	status := ""
	if c, ok := controllers.FindCondition(o, s.typ); ok {
		status = c.Status
	} else if strings.EqualFold(s.typ, "ready") && k.Static != nil && k.Static(o) {
		status = k.Ready(o).Status
	}
	return strings.EqualFold(status, s.status) != s.negated
}

// pickKinds returns the rows that --kind names, in the order of the catalogue.
func pickKinds(rows []controllers.Kind, words []string) ([]controllers.Kind, error) {
	picked := map[string]bool{}
	for _, word := range words {
		named := controllers.KindsNamed(word)
		if len(named) == 0 {
			return nil, unknownKind(word, rows)
		}
		for _, k := range named {
			if !slices.ContainsFunc(rows, func(row controllers.Kind) bool { return row.Kind == k.Kind }) {
				return nil, hinted("--kind takes "+strings.Join(kindWords(rows), ", "), "%s is none of the kinds that this command lists", k.Kind)
			}
			picked[k.Kind] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(k controllers.Kind) bool { return !picked[k.Kind] }), nil
}

// unknownKind is the error of a word that means none of the kinds.
func unknownKind(word string, rows []controllers.Kind) error {
	near := nearest{word: strings.ToLower(word)}
	for _, k := range rows {
		near.try(k.Kind, k.Words())
	}
	hint := "the kinds are " + strings.Join(kindWords(rows), ", ")
	if kind := near.meant(); kind != "" {
		hint = fmt.Sprintf("did you mean %s?", kind)
	}
	return hinted(hint, "'%s' is not a recognized Flux kind", word)
}

// kindWords are the words for kinds that need no further explanation.
func kindWords(rows []controllers.Kind) []string {
	var words []string
	for _, k := range rows {
		if k.Short != "" {
			words = append(words, k.Short)
		} else {
			words = append(words, strings.ToLower(k.Kind))
		}
	}
	return words
}
