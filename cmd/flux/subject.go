package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/pkg/controllers"
)

// parseSubject reads what --for names; namespace is that of an object that none
// is written with.
func parseSubject(text, namespace string) (target, error) {
	r, ok := readObject([]string{text})
	if !ok {
		return target{}, hinted("write it as in --for Kustomization/my-app or --for hr/my-app", "--for %q is not of the form KIND/NAME", text)
	}
	k, err := r.kind()
	return target{kind: k, namespace: r.in(namespace), name: r.name}, err
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
