package diagnose

import (
	"slices"

	"github.com/fluxkit/flux/pkg/controllers"
)

// uncertain lists the codes of root causes that are not definite. maybeDown lists the codes of objects whose controller may not be
// working.
var (
	uncertain = []string{"", "unreconciled", "progressing", "waiting", "not-ready"}
	maybeDown = []string{"unreconciled", "behind", "progressing"}
)

// unknown describes what could not be read and could change the result for an object with some causes.
func (e *evaluation) unknown(causes []Cause) []string {
	has := func(codes []string) bool {
		return slices.ContainsFunc(causes, func(c Cause) bool { return slices.Contains(codes, c.Root().Code) })
	}
	var lines []string
	if in := e.installation; in.unread != "" && (in.unread == in.empty() || has(maybeDown)) {
		lines = append(lines, in.unread)
	}
	if len(causes) == 0 || has(uncertain) {
		lines = append(lines, e.snapshot.Gaps()...)
	}
	return lines
}

// unknownOfAll describes what could not be read in a scope. It includes the controllers if the scope contains their namespace.
func (e *evaluation) unknownOfAll(scope Scope) []string {
	var lines []string
	if in := e.installation; in.unread != "" && (in.unread == in.empty() || scope.contains(e.home)) {
		lines = append(lines, in.unread)
	}
	return append(lines, e.snapshot.Gaps()...)
}

// unknownOfFailed describes what could not be read and could change the result for failed objects. It includes the controllers
// if an object reports no failure, and forbidden objects if a cause is uncertain: tenants have few permissions.
func (e *evaluation) unknownOfFailed(r Result, failed []controllers.ID) []string {
	noFailure, isUncertain := false, false
	for _, t := range failed {
		code := ""
		if c, ok := r.Of(t); ok {
			code = c.Root().Code
		}
		noFailure = noFailure || code == "" || code == "unreconciled"
		isUncertain = isUncertain || slices.Contains(uncertain, code)
	}
	var lines []string
	if in := e.installation; in.unread != "" && (noFailure || isUncertain && in.unread != in.empty()) {
		lines = append(lines, in.unread)
	}
	if isUncertain {
		lines = append(lines, e.snapshot.Gaps()...)
	}
	return lines
}
