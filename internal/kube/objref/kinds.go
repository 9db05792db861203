// Package objref parses references to the objects that a command acts on, reads
// the objects, and defines the errors for unknown kinds and missing objects.
package objref

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// UnknownKind returns the error for a word that does not match any of the kinds.
func UnknownKind(word string, rows []controllers.Kind) error {
	near := hint.Nearest{Word: strings.ToLower(word)}
	for _, k := range rows {
		near.Try(k.Kind, k.Words())
	}
	remedy := "the kinds are " + strings.Join(KindWords(rows), ", ")
	if kind := near.Best(); kind != "" {
		remedy = fmt.Sprintf("did you mean %s?", kind)
	}
	return hint.Errorf(remedy, "'%s' is not a recognized Flux kind", word)
}

// KindWords returns the short name of each kind, or its lower-case name.
func KindWords(rows []controllers.Kind) []string {
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

// JoinKinds returns the names of kinds as "A, B or C".
func JoinKinds(kinds []controllers.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// ApplicationKinds returns the kinds that are searched for a name without a kind.
func ApplicationKinds() []controllers.Kind {
	var kinds []controllers.Kind
	for _, kind := range []string{"Kustomization", "HelmRelease"} {
		k, _ := controllers.FindKind(kind)
		kinds = append(kinds, k)
	}
	return kinds
}
