package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/controllers"
)

// everyKind is the word for all kinds that a verb applies to.
const everyKind = "all"

// selection is what the words of a command line select: named objects, or
// kinds whose objects --all and the like select.
type selection struct {
	// kinds are the kinds of what is selected, each once.
	kinds []controllers.Kind
	// objects are the named ones, each once. An empty namespace stands for the
	// one of the command line.
	objects []target
	// word is what messages call the objects where a family or no kind at all is
	// named, and every is true where kinds that the cluster does not serve are
	// left out.
	word  string
	every bool
	// all is true for the word "all", which selects as --all does.
	all bool
}

// ofKind is the selection of the command of a kind with the names behind it.
func ofKind(k controllers.Kind, names []string) (selection, error) {
	s := selection{kinds: []controllers.Kind{k}}
	for _, name := range names {
		if strings.Contains(name, "/") {
			return s, notAName(s, name)
		}
		s.add(target{kind: k, name: name})
	}
	return s, nil
}

// notAName is the error of a word with a slash behind the words for kinds.
func notAName(s selection, word string) error {
	hint := "select the namespace with --namespace"
	if ref, ok := readObject([]string{word}); ok && len(ref.kinds) == 1 {
		hint = "write KIND/NAME without a kind before it"
	}
	return hinted(hint, "%q is not the name of a %s", word, s.noun())
}

func (s *selection) add(t target) {
	if !slices.ContainsFunc(s.objects, func(o target) bool { return o.key() == t.key() }) {
		s.objects = append(s.objects, t)
	}
	s.addKind(t.kind)
}

func (s *selection) addKind(k controllers.Kind) {
	if !slices.ContainsFunc(s.kinds, func(have controllers.Kind) bool { return have.Kind == k.Kind }) {
		s.kinds = append(s.kinds, k)
	}
}

// several reports whether more than one kind is selected, even if only one is served.
func (s selection) several() bool { return s.word != "" || len(s.kinds) > 1 }

// noun is how messages call the selected kinds.
func (s selection) noun() string {
	switch {
	case s.word != "":
		return s.word
	case len(s.kinds) == 1:
		return s.kinds[0].Kind
	}
	return kindList(s.kinds)
}

// one is how messages call any one object of the selected kinds.
func (s selection) one() string {
	if s.several() {
		return "object"
	}
	return s.kinds[0].Kind
}

// kindList names kinds as in "A, B or C".
func kindList(kinds []controllers.Kind) string {
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

// rows are the kinds that the verb applies to.
func (v verb) rows() []controllers.Kind {
	return slices.DeleteFunc(slices.Clone(controllers.Kinds), func(k controllers.Kind) bool { return !k.Has(v.applies) })
}

// selected reads the words behind the verb where cobra found no command for
// them: all, KIND[,KIND…] [NAME…] or KIND/NAME….
func (v verb) selected(cmd *cobra.Command, words []string) (selection, error) {
	if len(words) == 0 {
		return selection{kinds: v.everyRow(), every: true, word: "Flux"}, nil
	}
	if words[0] == everyKind {
		if v.explicit {
			return selection{}, usage(cmd, "a kind is required")
		}
		if len(words) > 1 {
			return selection{}, hinted("name kinds instead, as in "+cmd.CommandPath()+" ks,hr my-app", "%q takes no names", everyKind)
		}
		return selection{kinds: v.everyRow(), every: true, word: "Flux", all: true}, nil
	}
	first := strings.Split(words[0], ",")
	if slices.ContainsFunc(first, func(word string) bool { return len(controllers.KindsNamed(word)) > 0 }) {
		return v.ofKinds(cmd, first, words[1:])
	}
	return v.ofObjects(cmd, words)
}

// everyRow are the kinds that stand for "all".
func (v verb) everyRow() []controllers.Kind {
	if v.every != nil {
		return v.every()
	}
	return v.rows()
}

// ofKinds reads KIND[,KIND…] [NAME…]: each kind has an object of each name.
func (v verb) ofKinds(cmd *cobra.Command, words, names []string) (selection, error) {
	var s selection
	for _, word := range words {
		named := controllers.KindsNamed(word)
		if len(named) == 0 {
			return s, unknownSubject(word)
		}
		rows := slices.DeleteFunc(slices.Clone(named), func(k controllers.Kind) bool { return !k.Has(v.applies) })
		if len(rows) == 0 {
			return s, v.inapplicable(cmd, named)
		}
		for _, k := range rows {
			s.addKind(k)
		}
	}
	kinds := s.kinds
	for _, name := range names {
		if strings.Contains(name, "/") {
			return s, notAName(s, name)
		}
		for _, k := range kinds {
			s.add(target{kind: k, name: name})
		}
	}
	return s, nil
}

// ofObjects reads KIND/NAME…, also with commas between them.
func (v verb) ofObjects(cmd *cobra.Command, words []string) (selection, error) {
	var s selection
	for _, word := range strings.Split(strings.Join(words, ","), ",") {
		ref, ok := readObject([]string{word})
		switch {
		case !strings.Contains(word, "/") && len(s.objects) == 0:
			return s, noSubcommand(cmd, []string{word})
		case !ok:
			return s, notAnObject(word)
		}
		k, err := ref.kind()
		if err != nil {
			return s, err
		}
		if !k.Has(v.applies) {
			return s, v.inapplicable(cmd, ref.kinds)
		}
		s.add(target{kind: k, namespace: ref.namespace, name: ref.name})
	}
	return s, nil
}

func (v verb) inapplicable(cmd *cobra.Command, kinds []controllers.Kind) error {
	return hinted("it takes "+strings.Join(kindWords(v.rows()), ", "), "%s does not apply to %s", cmd.CommandPath(), kindList(kinds))
}

// kindFlagSet are the flags that only some kinds have, with these kinds.
type kindFlagSet map[string][]controllers.Kind

// addKindFlags gives the command of a verb the flags of its kinds, for words
// that name a kind themselves.
func (v verb) addKindFlags(cmd *cobra.Command) kindFlagSet {
	flags := kindFlagSet{}
	if v.kindFlags == nil {
		return flags
	}
	rows := v.rows()
	slices.Reverse(rows) // Kustomization and HelmRelease describe what they share best
	for _, k := range rows {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		v.kindFlags(k, fs)
		fs.VisitAll(func(f *pflag.Flag) {
			if flags[f.Name] == nil {
				cmd.Flags().AddFlag(f)
			}
			flags[f.Name] = append(flags[f.Name], k)
		})
	}
	return flags
}

// check refuses a flag that none of the selected kinds has.
func (s kindFlagSet) check(cmd *cobra.Command, selected []controllers.Kind) error {
	var refused error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		kinds, ofKind := s[f.Name]
		applies := func(k controllers.Kind) bool {
			return slices.ContainsFunc(kinds, func(has controllers.Kind) bool { return has.Kind == k.Kind })
		}
		if ofKind && !slices.ContainsFunc(selected, applies) {
			refused = errors.Join(refused, fmt.Errorf("--%s does not apply to %s", f.Name, kindList(selected)))
		}
	})
	return refused
}
