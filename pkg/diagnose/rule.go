package diagnose

import (
	"slices"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// rule gives the failures of some kinds a code, a message and remedies. A
// failure is one of the rule's if it has one of its kinds, reasons, types and
// steps; nil stands for any.
type rule struct {
	code string
	// kinds are those of the object of Flux, reasons those of its condition.
	kinds, reasons []string
	types          []failure.Type
	steps          []failure.Step
	// when narrows the rule down further; nil does not.
	when     func(subject) bool
	message  func(subject) string
	remedies func(subject) []string
	// upstream says that the source may know better, if it has failed too.
	upstream bool
	// located says that the message and the remedies name the file, once it is known.
	located bool
}

// fits reports whether the failure of s is one of the rule's.
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

// classified is a failure that a rule knows.
type classified struct {
	Finding
	upstream, located bool
}

// recognise classifies the failure of an object: by the kind, by the reason of
// the condition, and by the typed error that its message holds.
func recognise(s subject) (classified, bool) {
	s.failed = s.attempt()
	s.failure = failure.Parse(s.failed.Message)
	for _, list := range [][]rule{imageRules, sourceRules, applyRules, releaseRules} {
		for _, r := range list {
			if r.fits(s) {
				f := Finding{Object: targetOf(s.kind, s.object), Code: r.code, Message: oneLine(r.message(s)), Remedies: r.remedies(s)}
				return classified{f, r.upstream, r.located}, true
			}
		}
	}
	return classified{}, false
}

func fixed(text string) func(subject) string { return func(subject) string { return text } }

// withDetail is a text, and what the failure says behind it.
func withDetail(text string) func(subject) string {
	return func(s subject) string { return text + ": " + s.detail() }
}

// steps are remedies that are the same for every object, before another attempt.
func steps(texts ...string) func(subject) []string {
	return func(s subject) []string { return append(slices.Clone(texts), s.again()) }
}
