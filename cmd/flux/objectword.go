package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/pkg/controllers"
)

// fluxObject reads an object of Flux from the words of a command line: KIND
// NAME or KIND/NAME, and none where there are no words.
func fluxObject(args []string) (k controllers.Kind, name string, err error) {
	const example = "as in 'kustomization my-app' or 'ks/my-app'"
	if len(args) == 0 {
		return k, "", nil
	}
	word, name, slash := strings.Cut(args[0], "/")
	if slash == (len(args) == 2) || len(args) == 2 && args[1] == "" || slash && name == "" {
		return k, "", hinted(example, "%q names no object", strings.Join(args, " "))
	}
	if len(args) == 2 {
		name = args[1]
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
