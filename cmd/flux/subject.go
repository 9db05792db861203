package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/pkg/controllers"
)

// subjects are what events and logs are asked about: objects, or all objects of
// kinds, or neither for everything.
type subjects struct {
	objects []objectRef
	kinds   []controllers.Kind
}

// readSubjects reads --for and the words behind a command: KIND/NAME…,
// KIND[,KIND…] NAME… or KIND[,KIND…].
func readSubjects(flag string, words []string) (subjects, error) {
	switch {
	case flag != "" && len(words) > 0:
		return subjects{}, errors.New("give objects or --for, not both")
	case flag != "":
		r, ok := readObject([]string{flag})
		if !ok {
			return subjects{}, hinted("write it as in --for Kustomization/my-app or --for hr/my-app", "--for %q is not of the form KIND/NAME", flag)
		}
		return subjects{objects: []objectRef{r}}, unambiguous(r)
	case len(words) == 0:
		return subjects{}, nil
	case strings.Contains(words[0], "/") && len(controllers.KindsNamed(words[0])) == 0:
		return subjectObjects(strings.Split(strings.Join(words, ","), ","))
	}
	kinds, names := strings.Split(words[0], ","), words[1:]
	if len(names) == 0 {
		return subjectKinds(kinds)
	}
	var all subjects
	for _, name := range names {
		for _, kind := range kinds {
			r, ok := readObject([]string{kind, name})
			if !ok {
				return all, notAnObject(kind + " " + name)
			}
			if err := unambiguous(r); err != nil {
				return all, err
			}
			all.objects = append(all.objects, r)
		}
	}
	return all, nil
}

func subjectObjects(words []string) (subjects, error) {
	var all subjects
	for _, word := range words {
		r, ok := readObject([]string{word})
		if !ok {
			return all, notAnObject(word)
		}
		if err := unambiguous(r); err != nil {
			return all, err
		}
		all.objects = append(all.objects, r)
	}
	return all, nil
}

func subjectKinds(words []string) (subjects, error) {
	var all subjects
	for _, word := range words {
		called := controllers.KindsNamed(word)
		if len(called) == 0 {
			return all, unknownSubject(word)
		}
		all.kinds = append(all.kinds, called...)
	}
	return all, nil
}

// unambiguous refuses a word that means several kinds; one that Flux does not
// know may be any resource type of the cluster.
func unambiguous(r objectRef) error {
	if len(r.kinds) > 1 {
		_, err := r.kind()
		return err
	}
	return nil
}

// targets are the objects where all of them have to be of Flux.
func (s subjects) targets(namespace string) ([]target, error) {
	var all []target
	for _, r := range s.objects {
		k, err := r.kind()
		if err != nil {
			return nil, err
		}
		all = append(all, target{kind: k, namespace: r.in(namespace), name: r.name})
	}
	return all, nil
}

// completeSubjects completes the words that readSubjects reads.
func (a *app) completeSubjects(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 && strings.Contains(prefix, ",") && !strings.Contains(prefix, "/") {
		return listCompletion(kindWords(controllers.Kinds))(cmd, args, prefix)
	}
	if len(args) > 0 && strings.Contains(args[0], "/") {
		return a.completeSlashIn(controllers.Kinds)(cmd, args, prefix)
	}
	if len(args) > 0 && !strings.Contains(args[0], ",") {
		words, directive := a.completeObject(cmd, args[:1], prefix)
		return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(args, word) }), directive
	}
	return a.completeObject(cmd, args, prefix)
}
