package observe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// errNotRequested is returned for an object that was not requested.
var errNotRequested = errors.New("it was not read")

// covers reports whether a list would contain the object if it existed.
func (s *Snapshot) covers(t controllers.ID) bool {
	switch {
	case s.hidden != nil:
		return s.hidden(t) == nil
	case !s.listed, s.namespace != "" && t.Namespace != s.namespace:
		return false
	case s.narrowed[t.Kind] != nil:
		return t.Namespace == s.within
	default:
		return s.refused[t.Kind] == nil
	}
}

// Hidden returns the reason why the existence of an object is unknown, or nil if the object does not exist.
func (s *Snapshot) Hidden(t controllers.ID) error {
	if s.covers(t) || s.absent[t] {
		return nil
	}
	if s.hidden != nil {
		return s.hidden(t)
	}
	for _, err := range []error{s.unread[t], s.narrowed[t.Kind], s.refused[t.Kind]} {
		if err != nil {
			return err
		}
	}
	return errNotRequested
}

// Unread returns the error of an object that could not be read, or nil.
func (s *Snapshot) Unread(t controllers.ID) error { return s.unread[t] }

// AllRefused returns an error if no kind could be listed.
func (s *Snapshot) AllRefused() error {
	if !everyKind(func(kind string) bool { return s.refused[kind] != nil }) {
		return nil
	}
	return s.refused[controllers.Kinds[0].Kind]
}

// everyKind reports whether holds returns true for all Flux kinds except those of flux-operator.
func everyKind(holds func(kind string) bool) bool {
	return !slices.ContainsFunc(controllers.Kinds, func(k controllers.Kind) bool { return !holds(k.Kind) })
}

// unreadShown is the maximum number of unread objects to list.
const unreadShown = 8

// Gaps describes what could not be read: a line for kinds that were read only in one namespace, one for each reason, and one
// for each object.
func (s *Snapshot) Gaps() []string {
	lines := ByReason(s.narrowed, func(error) string { return fmt.Sprintf("no permission to list outside namespace %q", s.within) })
	lines = append(lines, ByReason(s.refused, unreadBecause)...)
	unread := Sorted(maps.Keys(s.unread))
	for _, t := range unread[:min(len(unread), unreadShown)] {
		lines = append(lines, Unread(t.String(), s.unread[t]))
	}
	if more := len(unread) - unreadShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more objects", more))
	}
	return lines
}

// ByReason returns a line for each reason, with its kinds.
func ByReason(errs map[string]error, reason func(error) string) []string {
	kinds := map[string][]string{}
	for _, kind := range slices.Sorted(maps.Keys(errs)) {
		kinds[reason(errs[kind])] = append(kinds[reason(errs[kind])], kind)
	}
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(kinds)) {
		if everyKind(func(kind string) bool { return slices.Contains(kinds[reason], kind) }) {
			kinds[reason] = []string{"all Flux resources"}
		}
		lines = append(lines, reason+": "+strings.Join(kinds[reason], ", "))
	}
	return lines
}
