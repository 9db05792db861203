// Package review finds the changes of a diff that are dangerous to merge without a review, such as the deletion of a namespace or
// a new cluster-admin. The rules are data: each has an ID, an effect, an explanation, and a function that finds it in a change. A
// rule evaluates only the objects of the diff; none contacts a cluster.
package review

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// AllowAnnotation lists the IDs of the rules that do not apply to an object, separated by commas. Only the annotation on the
// current object counts, not the one on the changed object: otherwise, a change could allow itself.
const AllowAnnotation = "fluxkit.dev/allow-danger"

// Rule is a reason to review a change.
type Rule struct {
	// ID identifies the rule on the command line, in annotations and in reports.
	ID string
	// Effect continues the name of the object, as in "is deleted".
	Effect string
	// Explanation describes why the change needs a review, and the remedy.
	Explanation string
	// Notice marks a rule that is reported, but does not fail a pipeline with --fail-on=danger.
	Notice bool

	// find returns a detail for each occurrence in a change. state returns the occurrences in an object; a change is reported for
	// those that it adds. owner returns a detail for each occurrence in the result of an owner. A detail may be empty. Two of the
	// functions are nil.
	find  func(change) []string
	state func(controllers.Object) []Occurrence
	owner func(*diff.Result) []string
}

// About reports whether the rule is about objects, and not only about their changes.
func (r Rule) About() bool { return r.state != nil }

// In returns the occurrences in an object. The rule must be about objects.
func (r Rule) In(o controllers.Object) []Occurrence { return r.state(o) }

// change is a change with its objects.
type change struct {
	diff.Change
	// builds reports whether two builds were compared, so that no server has validated the change.
	builds        bool
	before, after controllers.Object
}

// Find returns the rule with an ID.
func Find(id string) (Rule, bool) {
	for _, r := range Rules() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// Position returns the position of a rule among all rules, the most severe first. An unknown ID is last.
func Position(id string) int {
	all := Rules()
	for i, r := range all {
		if r.ID == id {
			return i
		}
	}
	return len(all)
}

// UnknownRuleError is returned for an ID that no rule has.
type UnknownRuleError struct{ ID string }

func (e *UnknownRuleError) Error() string { return fmt.Sprintf("unknown rule %q", e.ID) }

// Check returns an error for the first ID that no rule has.
func Check(ids []string) error {
	for _, id := range ids {
		if _, known := Find(id); !known {
			return &UnknownRuleError{ID: id}
		}
	}
	return nil
}

// Apply sets the dangers of all changes and results. Dangers of rules in allow or in the annotation on the current object are
// marked as allowed.
func Apply(results []*diff.Result, allow []string) {
	for _, r := range results {
		r.Dangers = nil
		for i := range r.Changes {
			r.Changes[i].Dangers = dangers(r, r.Changes[i], allow)
		}
		for _, rule := range Rules() {
			if rule.owner == nil {
				continue
			}
			for _, detail := range rule.owner(r) {
				r.Dangers = append(r.Dangers, diff.Danger{Rule: rule.ID, Detail: detail, Notice: rule.Notice, Allowed: allowance(rule.ID, allow, nil)})
			}
		}
	}
}

func dangers(r *diff.Result, c diff.Change, allow []string) []diff.Danger {
	subject := change{Change: c, builds: r.Builds}
	if c.Before != nil {
		subject.before = c.Before.Object
	}
	if c.After != nil {
		subject.after = c.After.Object
	}
	var found []diff.Danger
	for _, rule := range Rules() {
		find := rule.find
		if rule.state != nil {
			find = added(rule.state)
		}
		if find == nil {
			continue
		}
		for _, detail := range find(subject) {
			found = append(found, diff.Danger{Rule: rule.ID, Detail: detail, Notice: rule.Notice, Allowed: allowance(rule.ID, allow, subject.before)})
		}
	}
	return found
}

// allowance returns the flag or annotation that allows a danger, or "".
func allowance(id string, allow []string, before controllers.Object) string {
	if slices.Contains(allow, id) {
		return "--allow"
	}
	if controllers.Lists(before, AllowAnnotation, id) {
		return AllowAnnotation
	}
	return ""
}

// Blocking returns the findings that are neither notices nor allowed.
func Blocking(results []*diff.Result) []Finding {
	return slices.DeleteFunc(Findings(results), func(f Finding) bool { return f.Notice || f.Allowed != "" })
}

// Finding is a danger and the object that it concerns.
type Finding struct {
	Object controllers.VersionedID
	diff.Danger
}

// Findings returns the dangers of all results, each once: those that block before notices, in the
// order of the rules.
func Findings(results []*diff.Result) []Finding {
	var found []Finding
	seen := map[Finding]bool{}
	each(results, func(object controllers.VersionedID, d diff.Danger) {
		if f := (Finding{object, d}); !seen[f] {
			found = append(found, f)
			seen[f] = true
		}
	})
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(rank(a.Danger)-rank(b.Danger), Position(a.Rule)-Position(b.Rule))
	})
	return found
}

func rank(d diff.Danger) int {
	switch {
	case d.Allowed != "":
		return 2
	case d.Notice:
		return 1
	default:
		return 0
	}
}

func each(results []*diff.Result, do func(controllers.VersionedID, diff.Danger)) {
	for _, r := range results {
		for _, d := range r.Dangers {
			do(r.Owner, d)
		}
		for _, c := range r.Changes {
			for _, d := range c.Dangers {
				do(c.Object, d)
			}
		}
	}
}

// Effect returns the effect of a danger with its detail, as in "is deleted".
func Effect(d diff.Danger) string {
	rule, _ := Find(d.Rule)
	if d.Detail == "" {
		return rule.Effect
	}
	return rule.Effect + ": " + d.Detail
}
