package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/pkg/controllers"
)

// objectWords reads an object from the words of a command line: KIND NAME or
// KIND/NAME, and none where there are no words.
func objectWords(args []string) (word, name string, err error) {
	if len(args) == 0 {
		return "", "", nil
	}
	word, name, slash := strings.Cut(args[0], "/")
	if len(args) == 2 && !slash {
		name = args[1]
	}
	if word == "" || name == "" || slash && len(args) == 2 {
		return "", "", hinted("as in 'kustomization my-app' or 'ks/my-app'", "%q names no object", strings.Join(args, " "))
	}
	return word, name, nil
}

// fluxObject reads an object of Flux from the words of a command line.
func fluxObject(args []string) (k controllers.Kind, name string, err error) {
	word, name, err := objectWords(args)
	if err != nil || word == "" {
		return k, "", err
	}
	rows := controllers.Called(word)
	if len(rows) != 1 {
		return k, "", hinted("use one of "+strings.Join(kindWords(controllers.Kinds), ", "), "%q is no kind of Flux", word)
	}
	return rows[0], name, nil
}

// completeObject completes KIND NAME.
func (a *app) completeObject(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return kindWords(controllers.Kinds), cobra.ShellCompDirectiveNoFileComp
	}
	rows := controllers.Called(args[0])
	if len(args) > 1 || len(rows) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(rows[0])(cmd, nil, toComplete)
}
