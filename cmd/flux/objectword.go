package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/pkg/controllers"
)

// objectRef is an object as people write it: KIND NAME, KIND/NAME or, as tables
// show references, KIND/NAMESPACE/NAME.
type objectRef struct {
	// word is the kind as it was written, and kinds the rows that it may mean:
	// none where it is no word of Flux.
	word  string
	kinds []controllers.Kind
	// namespace is "" where none was written.
	namespace, name string
}

// readObject reads an object from one or two words; false says that they name none.
func readObject(args []string) (objectRef, bool) {
	parts := strings.Split(args[0], "/")
	if len(args) == 2 {
		return objectRef{word: args[0], kinds: controllers.Called(args[0]), name: args[1]}, len(parts) == 1 && args[0] != "" && args[1] != ""
	}
	r := objectRef{word: parts[0]}
	for length := len(parts) - 1; length > 0; length-- { // "source/git" is a word, too
		word := strings.Join(parts[:length], "/")
		if kinds := controllers.Called(word); len(kinds) > 0 {
			r.word, r.kinds, parts = word, kinds, parts[length-1:]
			break
		}
	}
	switch len(parts) {
	case 2:
		r.name = parts[1]
	case 3:
		r.namespace, r.name = parts[1], parts[2]
	}
	return r, r.name != "" && !slices.Contains(parts, "")
}

// kind is the one kind of Flux that the word means.
func (r objectRef) kind() (controllers.Kind, error) {
	switch len(r.kinds) {
	case 0:
		return controllers.Kind{}, unknownSubject(r.word)
	case 1:
		return r.kinds[0], nil
	}
	return controllers.Kind{}, hinted("name one of "+strings.Join(kindWords(r.kinds), ", "), "%q means several kinds", r.word)
}

// in is the namespace of the object, the given one where none was written.
func (r objectRef) in(namespace string) string { return orElse(r.namespace, namespace) }

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

// objectWords reads an object from the words of a command line, and none where
// there are no words.
func objectWords(args []string) (objectRef, error) {
	if len(args) == 0 {
		return objectRef{}, nil
	}
	r, ok := readObject(args)
	if !ok {
		return r, hinted("as in 'kustomization my-app' or 'ks/my-app'", "%q names no object", strings.Join(args, " "))
	}
	return r, nil
}

// fluxObject reads an object of Flux from the words of a command line; its name
// is "" where there are no words.
func fluxObject(args []string) (controllers.Kind, objectRef, error) {
	r, err := objectWords(args)
	if err != nil || r.name == "" {
		return controllers.Kind{}, r, err
	}
	k, err := r.kind()
	return k, r, err
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
