// Package objref reads the objects that command lines name, and names those
// that do not exist.
package objref

import (
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/suggest"
	"github.com/fluxkit/flux/pkg/controllers"
)

// UnknownKind is the error of a word that means none of the kinds.
func UnknownKind(word string, rows []controllers.Kind) error {
	near := suggest.Nearest{Word: strings.ToLower(word)}
	for _, k := range rows {
		near.Try(k.Kind, k.Words())
	}
	hint := "the kinds are " + strings.Join(KindWords(rows), ", ")
	if kind := near.Best(); kind != "" {
		hint = fmt.Sprintf("did you mean %s?", kind)
	}
	return clierr.WithHint(hint, "'%s' is not a recognized Flux kind", word)
}

// KindWords are the words for kinds that need no further explanation.
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

// JoinKinds names kinds as in "A, B or C".
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

// ApplicationKinds are those that people mean by the name of an application.
func ApplicationKinds() []controllers.Kind {
	var kinds []controllers.Kind
	for _, kind := range []string{"Kustomization", "HelmRelease"} {
		k, _ := controllers.FindKind(kind)
		kinds = append(kinds, k)
	}
	return kinds
}
