package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/pkg/controllers"
)

// verb is a command word that means the same for every kind.
type verb struct {
	name    string
	applies controllers.Verb
	// plural verbs list: their kinds are named in the plural.
	plural bool
	short  string
	// of is the short help of a kind's command, "%s" standing for the kind.
	of string
	// example has "%[1]s" where the words of the kind go, and examples are those
	// of the verb's own command.
	example, examples string
	// flags of all kinds, and those of one.
	flags     func(*pflag.FlagSet)
	kindFlags func(controllers.Kind, *pflag.FlagSet)
	run       func(cmd *cobra.Command, s selection) error
	// every are the kinds that "all" stands for; nil for all that the verb applies to.
	every func() []controllers.Kind
	// explicit verbs refuse a command line that names no kind.
	explicit bool
	// single verbs take one object.
	single bool
}

// families are the words above kinds, with their plurals.
var families = []struct{ word, plural, short string }{
	{"source", "sources", "source"},
	{"image", "images", "image automation"},
	{"artifact", "artifacts", "artifact"},
}

// multiply makes the commands of a verb on every kind that it applies to. The
// verb's own command takes the words that are no command: all, KIND,KIND and KIND/NAME.
func (a *app) multiply(v verb) *cobra.Command {
	root := &cobra.Command{
		Use: v.name + " [kind/name ...]", Short: v.short, Long: v.short + ".\n\n" + selectionHelp,
		Example: v.examples, ValidArgsFunction: a.completeSelection(v),
		Args: cobra.ArbitraryArgs, // the selection reads them
	}
	if v.flags != nil {
		v.flags(root.PersistentFlags())
	}
	ofKind := v.addKindFlags(root)
	root.RunE = func(cmd *cobra.Command, words []string) error {
		s, err := v.selected(cmd, words)
		if err != nil {
			return err
		}
		if len(words) == 0 && (v.explicit || !anyFlag(cmd.Flags())) {
			return usage(cmd, "a kind is required")
		}
		if err := ofKind.check(cmd, s.kinds); err != nil {
			return err
		}
		return v.run(cmd, s)
	}
	for _, f := range families {
		root.AddCommand(a.familyCommand(v, f.word, f.plural, f.short)...)
	}
	for _, k := range controllers.Family("") {
		if k.Has(v.applies) {
			root.AddCommand(a.kindCommand(v, k))
		}
	}
	return root
}

// selectionHelp is the part of a verb's help about the words behind it.
const selectionHelp = `Select objects by KIND NAME, by KIND/NAME or KIND/NAMESPACE/NAME, by several
kinds such as ks,hr, or select all kinds with "all".`

// anyFlag reports whether the command line sets a flag.
func anyFlag(fs *pflag.FlagSet) bool {
	found := false
	fs.Visit(func(*pflag.Flag) { found = true })
	return found
}

func (a *app) familyCommand(v verb, word, plural, what string) []*cobra.Command {
	var children []*cobra.Command
	s := selection{every: true, word: word}
	for _, k := range controllers.Family(word) {
		if k.Has(v.applies) {
			children, s.kinds = append(children, a.kindCommand(v, k)), append(s.kinds, k)
		}
	}
	if len(children) == 0 {
		return nil
	}
	cmd := group(word, fmt.Sprintf(v.of, what), children...)
	if v.plural {
		cmd.Use, cmd.Aliases = plural, []string{word}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if v.explicit {
			return usage(cmd, "a kind is required")
		}
		return v.run(cmd, s)
	}
	return []*cobra.Command{cmd}
}

func (a *app) kindCommand(v verb, k controllers.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use:               k.Word + " [name]",
		Short:             fmt.Sprintf(v.of, k.Kind),
		Example:           strings.TrimRight(fmt.Sprintf(v.example, k.Noun()), "\n"),
		ValidArgsFunction: a.completeNames(k),
		RunE: func(cmd *cobra.Command, names []string) error {
			s, err := ofKind(k, names)
			if err != nil {
				return err
			}
			return v.run(cmd, s)
		},
	}
	if k.Short != "" {
		cmd.Aliases = append(cmd.Aliases, k.Short)
	}
	if v.plural && k.Plural != k.Word {
		cmd.Use = k.Plural + " [name]"
		cmd.Aliases = append(cmd.Aliases, k.Word)
	}
	if v.kindFlags != nil {
		v.kindFlags(k, cmd.Flags())
	}
	return cmd
}
