package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// everyKind is the word for all kinds that a verb applies to.
const everyKind = "all"

// Selection is what the words of a command line select: named objects, or
// kinds whose objects --all and the like select.
type Selection struct {
	// Kinds are the kinds of what is selected, each once.
	Kinds []controllers.Kind
	// Objects are the named ones, each once. An empty namespace stands for the
	// one of the command line.
	Objects []objref.Target
	// Word is what messages call the objects where a family or no kind at all is
	// named, and every is true where kinds that the cluster does not serve are
	// left out.
	Word  string
	Every bool
	// all is true for the word "all", which selects as --all does.
	all bool
}

// ofKind is the selection of the command of a kind with the names behind it.
func ofKind(k controllers.Kind, names []string) (Selection, error) {
	s := Selection{Kinds: []controllers.Kind{k}}
	for _, name := range names {
		if strings.Contains(name, "/") {
			return s, notAName(s, name)
		}
		s.Add(objref.Target{Kind: k, Name: name})
	}
	return s, nil
}

// notAName is the error of a word with a slash behind the words for kinds.
func notAName(s Selection, word string) error {
	hint := "select the namespace with --namespace"
	if ref, ok := objref.Parse([]string{word}); ok && len(ref.Kinds) == 1 {
		hint = "write KIND/NAME without a kind before it"
	}
	return clierr.WithHint(hint, "%q is not the name of a %s", word, s.Noun())
}

// Add adds an object and its kind, each once.
func (s *Selection) Add(t objref.Target) {
	if !slices.ContainsFunc(s.Objects, func(o objref.Target) bool { return o.Key() == t.Key() }) {
		s.Objects = append(s.Objects, t)
	}
	s.addKind(t.Kind)
}

func (s *Selection) addKind(k controllers.Kind) {
	if !slices.ContainsFunc(s.Kinds, func(have controllers.Kind) bool { return have.Kind == k.Kind }) {
		s.Kinds = append(s.Kinds, k)
	}
}

// Several reports whether more than one kind is selected, even if only one is served.
func (s Selection) Several() bool { return s.Word != "" || len(s.Kinds) > 1 }

// Noun is how messages call the selected kinds.
func (s Selection) Noun() string {
	switch {
	case s.Word != "":
		return s.Word
	case len(s.Kinds) == 1:
		return s.Kinds[0].Kind
	}
	return objref.JoinKinds(s.Kinds)
}

// One is how messages call any one object of the selected kinds.
func (s Selection) One() string {
	if s.Several() {
		return "object"
	}
	return s.Kinds[0].Kind
}

// rows are the kinds that the verb applies to.
func (v Verb) rows() []controllers.Kind {
	return slices.DeleteFunc(slices.Clone(controllers.Kinds), func(k controllers.Kind) bool { return !k.Has(v.Applies) })
}

// selected reads the words behind the verb where cobra found no command for
// them: all, KIND[,KIND…] [NAME…] or KIND/NAME….
func (v Verb) selected(cmd *cobra.Command, words []string) (Selection, error) {
	if len(words) == 0 {
		return Selection{Kinds: v.everyRow(), Every: true, Word: "Flux"}, nil
	}
	if words[0] == everyKind {
		if v.Explicit {
			return Selection{}, clierr.Usage(cmd, "a kind is required")
		}
		if len(words) > 1 {
			return Selection{}, clierr.WithHint("name kinds instead, as in "+cmd.CommandPath()+" ks,hr my-app", "%q takes no names", everyKind)
		}
		return Selection{Kinds: v.everyRow(), Every: true, Word: "Flux", all: true}, nil
	}
	first := strings.Split(words[0], ",")
	if slices.ContainsFunc(first, func(word string) bool { return len(controllers.KindsNamed(word)) > 0 }) {
		return v.ofKinds(cmd, first, words[1:])
	}
	return v.ofObjects(cmd, words)
}

// everyRow are the kinds that stand for "all".
func (v Verb) everyRow() []controllers.Kind {
	if v.Every != nil {
		return v.Every()
	}
	return v.rows()
}

// ofKinds reads KIND[,KIND…] [NAME…]: each kind has an object of each name.
func (v Verb) ofKinds(cmd *cobra.Command, words, names []string) (Selection, error) {
	var s Selection
	for _, word := range words {
		named := controllers.KindsNamed(word)
		if len(named) == 0 {
			return s, objref.UnknownWord(word)
		}
		rows := slices.DeleteFunc(slices.Clone(named), func(k controllers.Kind) bool { return !k.Has(v.Applies) })
		if len(rows) == 0 {
			return s, v.inapplicable(cmd, named)
		}
		for _, k := range rows {
			s.addKind(k)
		}
	}
	kinds := s.Kinds
	for _, name := range names {
		if strings.Contains(name, "/") {
			return s, notAName(s, name)
		}
		for _, k := range kinds {
			s.Add(objref.Target{Kind: k, Name: name})
		}
	}
	return s, nil
}

// ofObjects reads KIND/NAME…, also with commas between them.
func (v Verb) ofObjects(cmd *cobra.Command, words []string) (Selection, error) {
	var s Selection
	for _, word := range strings.Split(strings.Join(words, ","), ",") {
		ref, ok := objref.Parse([]string{word})
		switch {
		case !strings.Contains(word, "/") && len(s.Objects) == 0:
			return s, command.NoSubcommand(cmd, []string{word})
		case !ok:
			return s, objref.NotAnObject(word)
		}
		k, err := ref.Kind()
		if err != nil {
			return s, err
		}
		if !k.Has(v.Applies) {
			return s, v.inapplicable(cmd, ref.Kinds)
		}
		s.Add(objref.Target{Kind: k, Namespace: ref.Namespace, Name: ref.Name})
	}
	return s, nil
}

func (v Verb) inapplicable(cmd *cobra.Command, kinds []controllers.Kind) error {
	return clierr.WithHint("it takes "+strings.Join(objref.KindWords(v.rows()), ", "), "%s does not apply to %s", cmd.CommandPath(), objref.JoinKinds(kinds))
}

// kindFlagSet are the flags that only some kinds have, with these kinds.
type kindFlagSet map[string][]controllers.Kind

// addKindFlags gives the command of a verb the flags of its kinds, for words
// that name a kind themselves.
func (v Verb) addKindFlags(cmd *cobra.Command) kindFlagSet {
	flags := kindFlagSet{}
	if v.KindFlags == nil {
		return flags
	}
	rows := v.rows()
	slices.Reverse(rows) // Kustomization and HelmRelease describe what they share best
	for _, k := range rows {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		v.KindFlags(k, fs)
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
			refused = errors.Join(refused, fmt.Errorf("--%s does not apply to %s", f.Name, objref.JoinKinds(selected)))
		}
	})
	return refused
}

// Pick returns the rows that --kind names, in the order of the catalogue.
func Pick(rows []controllers.Kind, words []string) ([]controllers.Kind, error) {
	picked := map[string]bool{}
	for _, word := range words {
		named := controllers.KindsNamed(word)
		if len(named) == 0 {
			return nil, objref.UnknownKind(word, rows)
		}
		for _, k := range named {
			if !slices.ContainsFunc(rows, func(row controllers.Kind) bool { return row.Kind == k.Kind }) {
				return nil, clierr.WithHint("--kind takes "+strings.Join(objref.KindWords(rows), ", "), "%s is none of the kinds that this command lists", k.Kind)
			}
			picked[k.Kind] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(k controllers.Kind) bool { return !picked[k.Kind] }), nil
}

// Place is where objects of a kind are.
type Place struct{ Kind, Namespace string }
