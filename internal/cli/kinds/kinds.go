// Package kinds makes the commands of a verb on the kinds of the catalogue, and
// selects the objects that they act on.
package kinds

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Verb is a command word that means the same for every kind.
type Verb struct {
	Name    string
	Applies controllers.Verb
	// Plural verbs list: their kinds are named in the plural.
	Plural bool
	Short  string
	// Of is the short help of a kind's command, "%s" standing for the kind.
	Of string
	// Example has "%[1]s" where the words of the kind go, and examples are those
	// of the verb's own command.
	Example, Examples string
	// Flags of all kinds, and those of one.
	Flags     func(*pflag.FlagSet)
	KindFlags func(controllers.Kind, *pflag.FlagSet)
	Run       func(cmd *cobra.Command, s Selection) error
	// Every are the kinds that "all" stands for; nil for all that the verb applies to.
	Every func() []controllers.Kind
	// Explicit verbs refuse a command line that names no kind.
	Explicit bool
	// Single verbs take one object.
	Single bool
}

// Families are the words above kinds, with their plurals.
var Families = []struct{ Word, plural, Short string }{
	{"source", "sources", "source"},
	{"image", "images", "image automation"},
	{"artifact", "artifacts", "artifact"},
}

// NewCommand makes the commands of a verb on every kind that it applies to. The
// verb's own command takes the words that are no command: all, KIND,KIND and KIND/NAME.
func NewCommand(a *app.App, v Verb) *cobra.Command {
	root := &cobra.Command{
		Use: v.Name + " [kind/name ...]", Short: v.Short, Long: v.Short + ".\n\n" + Help,
		Example: v.Examples, ValidArgsFunction: completeSelection(a, v),
		Args: cobra.ArbitraryArgs, // the selection reads them
	}
	if v.Flags != nil {
		v.Flags(root.PersistentFlags())
	}
	ofKind := v.addKindFlags(root)
	root.RunE = func(cmd *cobra.Command, words []string) error {
		s, err := v.selected(cmd, words)
		if err != nil {
			return err
		}
		if len(words) == 0 && (v.Explicit || !anyFlag(cmd.Flags())) {
			return clierr.Usage(cmd, "a kind is required")
		}
		if err := ofKind.check(cmd, s.Kinds); err != nil {
			return err
		}
		return v.Run(cmd, s)
	}
	for _, f := range Families {
		root.AddCommand(familyCommand(a, v, f.Word, f.plural, f.Short)...)
	}
	for _, k := range controllers.Family("") {
		if k.Has(v.Applies) {
			root.AddCommand(kindCommand(a, v, k))
		}
	}
	return root
}

// Help is the part of a verb's help about the words behind it.
const Help = `Select objects by KIND NAME, by KIND/NAME or KIND/NAMESPACE/NAME, by several
kinds such as ks,hr, or select all kinds with "all".`

// anyFlag reports whether the command line sets a flag.
func anyFlag(fs *pflag.FlagSet) bool {
	found := false
	fs.Visit(func(*pflag.Flag) { found = true })
	return found
}

func familyCommand(a *app.App, v Verb, word, plural, what string) []*cobra.Command {
	var children []*cobra.Command
	s := Selection{Every: true, Word: word}
	for _, k := range controllers.Family(word) {
		if k.Has(v.Applies) {
			children, s.Kinds = append(children, kindCommand(a, v, k)), append(s.Kinds, k)
		}
	}
	if len(children) == 0 {
		return nil
	}
	cmd := command.Group(word, fmt.Sprintf(v.Of, what), children...)
	if v.Plural {
		cmd.Use, cmd.Aliases = plural, []string{word}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if v.Explicit {
			return clierr.Usage(cmd, "a kind is required")
		}
		return v.Run(cmd, s)
	}
	return []*cobra.Command{cmd}
}

func kindCommand(a *app.App, v Verb, k controllers.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use:               k.Word + " [name]",
		Short:             fmt.Sprintf(v.Of, k.Kind),
		Example:           strings.TrimRight(fmt.Sprintf(v.Example, k.Noun()), "\n"),
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			s, err := ofKind(k, names)
			if err != nil {
				return err
			}
			return v.Run(cmd, s)
		},
	}
	if k.Short != "" {
		cmd.Aliases = append(cmd.Aliases, k.Short)
	}
	if v.Plural && k.Plural != k.Word {
		cmd.Use = k.Plural + " [name]"
		cmd.Aliases = append(cmd.Aliases, k.Word)
	}
	if v.KindFlags != nil {
		v.KindFlags(k, cmd.Flags())
	}
	return cmd
}
