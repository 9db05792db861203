// Package rules turns the status of an object into a finding: a failure in, a message and its fixes out. It is pure: it reads
// only the object, the failure that package failure parses from its message, and what was observed about it.
//
// A rule is a row of a table: the kinds, reasons, types and steps of the failures that it matches, and texts with words from
// [words] in braces. The first matching rule applies. A failure without a rule is reported with the message of the
// controller.
package rules

import (
	"slices"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// rule assigns a code, a message and fixes to failures. A failure matches if its kind, reason, type and step are in the
// corresponding lists. Nil matches all values.
type rule struct {
	code string
	// kinds lists the kinds of the Flux object. reasons lists the reasons of its condition.
	kinds, reasons []string
	types          []failure.Type
	steps          []failure.Step
	// when is a further condition, or nil.
	when func(Subject) bool
	// message, fixes and retry are texts with words in braces. more returns further fixes, or is nil. Without a retry, the
	// object is reconciled, with its source.
	message string
	fixes   []string
	more    func(Subject) []string
	retry   string
	// upstream is set if the source may be the root cause.
	upstream bool
	// live is set if the texts depend on Subject.Live.
	live bool
}

// tables returns the rules in the order in which they are tried.
func tables() [][]rule {
	return [][]rule{operatorRules, imageRules, sourceRules, expressionRules, applyRules, buildRules, releaseRules}
}

// matches reports whether the rule matches the failure of a subject.
func (r rule) matches(s Subject) bool {
	switch {
	case r.kinds != nil && !slices.Contains(r.kinds, s.Kind.Kind),
		r.reasons != nil && !slices.Contains(r.reasons, s.failed.Reason),
		r.types != nil && !slices.Contains(r.types, s.failure.Type),
		r.steps != nil && !s.failure.In(r.steps...):
		return false
	}
	return r.when == nil || r.when(s)
}

// finding returns the finding of a matching rule.
func (r rule) finding(s Subject) Finding {
	f := Finding{Object: s.ID(), Code: r.code, Message: failure.OneLine(s.fill(r.message)), Retry: s.Again()}
	for _, fix := range r.fixes {
		f.Fixes = append(f.Fixes, s.fill(fix))
	}
	if r.more != nil {
		f.Fixes = append(f.Fixes, r.more(s)...)
	}
	if r.retry != "" {
		f.Retry = s.fill(r.retry)
	}
	return f
}

// Classification is the finding of the rule that matches a failure.
type Classification struct {
	Finding Finding
	// Upstream is set if the source may be the root cause, Live if the finding depends on Subject.Live.
	Upstream, Live bool
}

// Classify returns the finding of the first rule that matches the failure of a subject, and false if none does.
func (s Subject) Classify() (Classification, bool) {
	s = s.parsed()
	for _, table := range tables() {
		for _, r := range table {
			if r.matches(s) {
				return Classification{r.finding(s), r.upstream, r.live}, true
			}
		}
	}
	return Classification{}, false
}

// word matches a word in braces.
var word = lazy.Regexp(`\{[a-z ]+\}`)

// fill returns a text with the values of its words.
func (s Subject) fill(text string) string {
	return word().ReplaceAllStringFunc(text, func(name string) string { return words[name[1:len(name)-1]](s) })
}
