package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// everyKind is the argument that selects all kinds that a verb applies to.
const everyKind = "all"

// EveryWord is the noun for the objects of all kinds that a verb applies to.
const EveryWord = "Flux"

// Selection holds the objects on the command line, or the kinds whose objects TargetOptions select.
type Selection struct {
	// Kinds are the selected kinds, without duplicates.
	Kinds []controllers.Kind
	// Objects are the named objects, without duplicates. An empty namespace means the namespace of
	// the command.
	Objects []objref.Target
	// Word is the noun for the objects in messages if the selection is a family or
	// all kinds, else "".
	Word string
	// Every is true if kinds that the cluster does not serve are skipped.
	Every bool
	// all is true for the argument "all", which implies --all.
	all bool
}

// ofKind returns the selection of a kind subcommand whose arguments are names.
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

// notAName returns the error for a name with a slash after a kind.
func notAName(s Selection, word string) error {
	remedy := "select the namespace with --namespace"
	if ref, ok := objref.Parse([]string{word}); ok && len(ref.Kinds) == 1 {
		remedy = "use KIND/NAME without a separate kind"
	}
	return hint.Errorf(remedy, "%q is not the name of %s", word, controllers.Indefinite(s.Noun()))
}

// Add adds an object and its kind, unless they are selected already.
func (s *Selection) Add(t objref.Target) {
	if !slices.ContainsFunc(s.Objects, func(o objref.Target) bool { return o.Key() == t.Key() }) {
		s.Objects = append(s.Objects, t)
	}
	s.addKind(t.Kind)
}

func (s *Selection) addKind(k controllers.Kind) {
	if !slices.ContainsFunc(s.Kinds, func(have controllers.Kind) bool { return have.CRD() == k.CRD() }) {
		s.Kinds = append(s.Kinds, k)
	}
}

// Several reports whether the command selects more than one kind, even if the
// cluster serves only one of them.
func (s Selection) Several() bool { return s.Word != "" || len(s.Kinds) > 1 }

// Noun returns the noun for the selected kinds in messages.
func (s Selection) Noun() string {
	switch {
	case s.Word != "":
		return s.Word
	case len(s.Kinds) == 1:
		return s.Kinds[0].Kind
	}
	return objref.JoinKinds(s.Kinds)
}

// One returns the noun for a single object of the selected kinds in messages.
func (s Selection) One() string {
	if s.Several() {
		return "object"
	}
	return s.Kinds[0].Kind
}

// rows returns the kinds that the verb applies to.
func (v Verb) rows() []controllers.Kind { return v.among(controllers.Known) }

func (v Verb) among(rows []controllers.Kind) []controllers.Kind {
	return slices.DeleteFunc(slices.Clone(rows), func(k controllers.Kind) bool { return !k.Has(v.Applies) })
}

// selected parses the arguments of a verb that are not a subcommand: all,
// KIND[,KIND…] [NAME…] or KIND/NAME….
func (v Verb) selected(cmd *cobra.Command, words []string) (Selection, error) {
	if len(words) == 0 {
		return Selection{Kinds: v.everyRow(), Every: true, Word: EveryWord}, nil
	}
	if words[0] == everyKind {
		switch path := cmd.CommandPath(); {
		case v.Single:
			return Selection{}, hint.Errorf("specify the objects: "+path+" ks/my-app hr/my-app", "%s does not accept %q", path, everyKind)
		case v.Explicit:
			return Selection{}, hint.Errorf("specify the kinds: "+path+" ks,hr --all", "%s does not accept %q", path, everyKind)
		case len(words) > 1:
			return Selection{}, hint.Errorf("specify the kinds: "+path+" ks,hr my-app", "%q does not accept names", everyKind)
		}
		return Selection{Kinds: v.everyRow(), Every: true, Word: EveryWord, all: true}, nil
	}
	first := strings.Split(words[0], ",")
	if slices.ContainsFunc(first, func(word string) bool { return len(controllers.KindsNamed(word)) > 0 }) {
		return v.ofKinds(cmd, first, words[1:])
	}
	if !strings.Contains(words[0], "/") {
		extensions, err := v.named(cmd, first[0])
		if err == nil && len(extensions) == 0 {
			err = command.NoSubcommandOrObject(cmd, words[:1])
		}
		if err != nil {
			return Selection{}, err
		}
		return v.ofKinds(cmd, first, words[1:])
	}
	return v.ofObjects(cmd, words)
}

// named returns the kinds of a name: those of the catalog or else, after requests to the cluster, a kind of a project that extends Flux. It
// returns none if the name is unknown.
func (v Verb) named(cmd *cobra.Command, word string) ([]controllers.Kind, error) {
	if rows := controllers.KindsNamed(word); len(rows) > 0 || objref.DidYouMean(word) != "" {
		return rows, nil
	}
	if k, ok := v.extensions[word]; ok {
		return []controllers.Kind{k}, nil
	}
	client, err := v.app.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := v.app.WithTimeout(cmd.Context())
	defer cancel()
	k, err := kube.Extension(ctx, client, word)
	var unknown *kube.UnknownWordError
	var foreign *kube.NotFluxKindError
	if errors.As(err, &unknown) || errors.As(err, &foreign) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.extensions[word] = k
	return []controllers.Kind{k}, nil
}

// everyRow returns the kinds that "all" selects: the Flux kinds, as in Flux 2.9. Kinds of flux-operator must
// be specified.
func (v Verb) everyRow() []controllers.Kind {
	if v.Every != nil {
		return v.Every()
	}
	return v.among(controllers.Kinds)
}

// ofKinds parses KIND[,KIND…] [NAME…] and selects each name in each kind.
func (v Verb) ofKinds(cmd *cobra.Command, words, names []string) (Selection, error) {
	var s Selection
	for _, word := range words {
		named, err := v.named(cmd, word)
		if err != nil {
			return s, err
		}
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

// ofObjects parses KIND/NAME…, separated by spaces or commas.
func (v Verb) ofObjects(cmd *cobra.Command, words []string) (Selection, error) {
	var s Selection
	for _, word := range strings.Split(strings.Join(words, ","), ",") {
		ref, ok := objref.Parse([]string{word})
		if !ok {
			return s, objref.NotAnObject(word)
		}
		var err error
		if ref.Kinds, err = v.named(cmd, ref.Word); err != nil {
			return s, err
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
	return hint.Errorf("use one of "+strings.Join(objref.KindWords(v.rows()), ", "), "%s does not apply to %s", cmd.CommandPath(), objref.JoinKinds(kinds))
}

// kindFlagSet maps the flags that only some kinds have to these kinds.
type kindFlagSet map[string][]controllers.Kind

// addKindFlags adds the flags of all kinds to the command of a verb, which accepts
// kinds as arguments.
func (v Verb) addKindFlags(cmd *cobra.Command) kindFlagSet {
	flags := kindFlagSet{}
	if v.KindFlags == nil {
		return flags
	}
	rows := v.rows()
	slices.Reverse(rows) // flags of several kinds have the help of Kustomization and HelmRelease
	rows = append(rows, extension())
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

// extension stands for the kinds with a source of projects that extend Flux.
func extension() controllers.Kind { return controllers.Kind{Source: &controllers.Ref{}} }

// check returns an error for a flag that does not apply to any selected kind.
func (s kindFlagSet) check(cmd *cobra.Command, selected []controllers.Kind) error {
	var refused error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		kinds, ofKind := s[f.Name]
		applies := func(k controllers.Kind) bool {
			extends := k.Controller == "" && k.Source != nil
			return slices.ContainsFunc(kinds, func(has controllers.Kind) bool { return has.Kind == k.Kind || has.Kind == "" && extends })
		}
		if ofKind && !slices.ContainsFunc(selected, applies) {
			refused = errors.Join(refused, fmt.Errorf("--%s does not apply to %s", f.Name, objref.JoinKinds(selected)))
		}
	})
	return refused
}

// Pick returns the kinds that --kind selects, in catalog order.
func Pick(rows []controllers.Kind, words []string) ([]controllers.Kind, error) {
	picked := map[string]bool{}
	for _, word := range words {
		named := controllers.KindsNamed(word)
		if len(named) == 0 {
			return nil, objref.UnknownKind(word, rows)
		}
		for _, k := range named {
			if !slices.ContainsFunc(rows, func(row controllers.Kind) bool { return row.Kind == k.Kind }) {
				return nil, hint.Errorf("--kind takes "+strings.Join(objref.KindWords(rows), ", "), "this command does not list %s objects", k.Kind)
			}
			picked[k.Kind] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(k controllers.Kind) bool { return !picked[k.Kind] }), nil
}

// KindNamespace is a kind in a namespace: the scope of a list or watch.
type KindNamespace struct{ Kind, Namespace string }
