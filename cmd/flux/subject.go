package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/pkg/controllers"
)

// parseSubject reads what --for names: KIND/NAME, with any word for the kind,
// or KIND/NAMESPACE/NAME as tables show references.
func parseSubject(text, namespace string) (target, error) {
	cut := strings.LastIndexByte(text, '/')
	if cut < 1 || cut == len(text)-1 {
		return target{}, hinted("write it as in --for Kustomization/my-app or --for hr/my-app", "--for %q is not of the form KIND/NAME", text)
	}
	word, name := text[:cut], text[cut+1:]
	rows := controllers.Called(word)
	if kind, within, ok := strings.Cut(word, "/"); ok && len(rows) == 0 {
		word, namespace = kind, within
		rows = controllers.Called(word)
	}
	switch len(rows) {
	case 0:
		return target{}, unknownSubject(word)
	case 1:
		return target{kind: rows[0], namespace: namespace, name: name}, nil
	}
	return target{}, hinted("name one of "+strings.Join(kindWords(rows), ", "), "%q means several kinds", word)
}

func unknownSubject(word string) error {
	near := nearest{word: strings.ToLower(word)}
	for _, k := range controllers.Kinds {
		near.try(k.Kind, k.Words())
	}
	if kind := near.meant(); kind != "" {
		return hinted(fmt.Sprintf("did you mean %s?", kind), "'%s' is not a recognized Flux kind", word)
	}
	return hinted("the kinds are "+strings.Join(kindWords(controllers.Kinds), ", "), "'%s' is not a recognized Flux kind", word)
}

// completeSubject offers the words for kinds, then the names of the kind's objects.
func (a *app) completeSubject() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		word, name, ok := strings.Cut(prefix, "/")
		if !ok {
			var words []string
			for _, w := range kindWords(controllers.Kinds) {
				words = append(words, w+"/")
			}
			return offered(words, nil, prefix), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		rows := controllers.Called(word)
		if len(rows) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, directive := a.completeNames(rows[0])(cmd, nil, name)
		for i := range names {
			names[i] = word + "/" + names[i]
		}
		return names, directive
	}
}
