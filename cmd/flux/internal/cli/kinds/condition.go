package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Failed reports whether the Ready condition of an object is False. An object
// that is not reconciled yet has not failed.
func Failed(k controllers.Kind, o controllers.Object) bool {
	c, ok := controllers.FindCondition(o, "Ready")
	return ok && c.Status == "False" && k.Ready(o).Status == "False"
}

// ConditionSelector selects objects by a condition: type=status or type!=status.
type ConditionSelector struct {
	typ, status string
	negated     bool
}

// ParseConditionSelector parses TYPE=STATUS or TYPE!=STATUS.
func ParseConditionSelector(s string) (ConditionSelector, error) {
	if s == "" {
		return ConditionSelector{}, nil
	}
	for _, operator := range []string{"!=", "="} {
		if typ, status, ok := strings.Cut(s, operator); ok && typ != "" && status != "" && !strings.Contains(status, "=") {
			selector := ConditionSelector{typ, status, operator == "!="}
			return selector, selector.check()
		}
	}
	return ConditionSelector{}, fmt.Errorf("expected status selector in type=status or type!=status format, but found: %s", s)
}

// check returns an error for an unknown condition type or status.
func (s ConditionSelector) check() error {
	types := controllers.ConditionTypes()
	if !slices.ContainsFunc(types, func(known string) bool { return strings.EqualFold(known, s.typ) }) {
		near := hint.Nearest{Word: strings.ToLower(s.typ)}
		for _, known := range types {
			near.Try(known, []string{strings.ToLower(known)})
		}
		remedy := "the conditions are " + strings.Join(types, ", ")
		if known := near.Best(); known != "" {
			remedy = fmt.Sprintf("did you mean %s?", known)
		}
		return hint.Errorf(remedy, "--status-selector: unknown condition %q", s.typ)
	}
	if !slices.Contains([]string{"true", "false", "unknown"}, strings.ToLower(s.status)) {
		return fmt.Errorf("--status-selector: invalid status %q: must be true, false or unknown", s.status)
	}
	return nil
}

// Matches reports whether an object has the condition status. Ready has the value
// of the READY column. An object without the condition matches only type!=status.
func (s ConditionSelector) Matches(k controllers.Kind, o controllers.Object) bool {
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
