package inventory

import (
	"fmt"
	"sync"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/tree"
)

// objectsShown is the maximum number of objects to list for one problem.
const objectsShown = 5

// Result is the result of a check.
type Result struct {
	Problems []Problem
	// Unknown describes what could not be checked, and why.
	Unknown []string
}

// Problem is a problem of an applied object.
type Problem struct {
	// Summary describes the problem for the applier.
	Summary string
	Finding rules.Finding
}

// check is the state of one check.
type check struct {
	checker   *Checker
	subject   rules.Subject
	inventory *observe.Inventory
	// desired is the desired state, or nil if it is unknown. changed lists the objects that may differ from it.
	desired *desired
	changed []candidate
	mu      sync.Mutex // protects changed
	result  Result
}

// each adds a problem for each object that has one. If more than objectsShown objects have one, a detail of the first
// problem reports that.
func (k *check) each(summary, more string, find func(controllers.ID) (rules.Finding, bool)) {
	first, found := len(k.result.Problems), 0
	for _, t := range k.inventory.Objects {
		f, ok := find(t)
		if !ok {
			continue
		}
		if found++; found > objectsShown {
			details := &k.result.Problems[first].Finding.Details
			*details = append(*details, more)
			return
		}
		k.result.Problems = append(k.result.Problems, Problem{summary, f})
	}
}

// unknown adds a description of what could not be checked.
func (k *check) unknown(format string, args ...any) {
	k.result.Unknown = append(k.result.Unknown, fmt.Sprintf(format, args...))
}

// correction describes when the controller of an applier corrects an object, and returns the commands that correct it
// immediately.
func correction(s rules.Subject, now time.Time) (detail string, fixes []string) {
	if s.Kind.Drift == nil { // every reconciliation applies all objects
		detail = s.Kind.Controller + " corrects it at the next reconciliation"
		schedule := (tree.Link{Kind: s.Kind, Live: s.Object}).Schedule()
		if schedule.Next.After(now) {
			detail += ", about " + schedule.Next.UTC().Format(time.RFC3339)
		} else if schedule.Interval > 0 {
			detail += fmt.Sprintf(" (interval %s)", schedule.Interval)
		}
		return detail, []string{s.Command("reconcile")}
	}
	field := s.Kind.Drift[0]
	switch s.Kind.Drift.String(s.Object) {
	case "enabled":
		return fmt.Sprintf("%s corrects it at the next reconciliation (interval %s)", s.Kind.Controller, s.Text("spec.interval")), []string{s.Command("reconcile")}
	case "warn":
		detail = field + ": warn reports drift only in events; it is not corrected before the next upgrade"
	default:
		detail = field + " is not enabled: drift is not corrected before the next upgrade"
	}
	return detail, []string{s.Command("reconcile", "--force"), fmt.Sprintf("to correct drift automatically, set %s: enabled in %s", field, s)}
}

func andMore(n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("and %d more", n)}
}
