package diagnose

import (
	"slices"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// rule assigns a code, a message and remedies to failures. A failure matches if its kind, reason,
// type and step are in the corresponding lists. Nil matches all values.
type rule struct {
	code string
	// kinds lists the kinds of the Flux object, reasons the reasons of its condition.
	kinds, reasons []string
	types          []failure.Type
	steps          []failure.Step
	// when is a further condition, or nil.
	when     func(subject) bool
	message  func(subject) string
	remedies func(subject) []string
	// upstream is set if the source may have the root cause.
	upstream bool
	// located is set if the message and the remedies name the file.
	located bool
}

// fits reports whether the failure of s matches the rule.
func (r rule) fits(s subject) bool {
	switch {
	case r.kinds != nil && !slices.Contains(r.kinds, s.kind.Kind),
		r.reasons != nil && !slices.Contains(r.reasons, s.failed.Reason),
		r.types != nil && !slices.Contains(r.types, s.failure.Type),
		r.steps != nil && !s.failure.In(r.steps...):
		return false
	}
	return r.when == nil || r.when(s)
}

// classified is the finding of a matching rule.
type classified struct {
	Finding
	upstream, located bool
}

// recognize classifies the failure of an object by its kind, the reason of its
// condition, and the typed error in the message.
func recognize(s subject) (classified, bool) {
	s.failed = s.attempt()
	s.failure = failure.Parse(s.failed.Message)
	for _, list := range [][]rule{imageRules, sourceRules, applyRules, releaseRules} {
		for _, r := range list {
			if r.fits(s) {
				f := Finding{Object: s.kind.IDOf(s.object), Code: r.code, Message: oneLine(r.message(s)), Remedies: r.remedies(s)}
				return classified{f, r.upstream, r.located}, true
			}
		}
	}
	return classified{}, false
}

// fixed returns a function that returns the text.
func fixed(text string) func(subject) string { return func(subject) string { return text } }

// withDetail returns the text followed by the detail of the failure.
func withDetail(text string) func(subject) string {
	return func(s subject) string { return text + ": " + s.detail() }
}
