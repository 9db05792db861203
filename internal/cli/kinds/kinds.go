// Package kinds builds the commands of a verb for the kinds of the catalogue and
// selects the objects that the commands act on.
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

// Verb describes a command that has a subcommand for each kind, such as get.
type Verb struct {
	Name    string
	Applies controllers.Verb
	// Plural verbs list objects and have plural names of kinds as subcommands.
	Plural bool
	Short  string
	// Of is the short help of the subcommand of a kind, with "%s" for the kind.
	Of string
	// Example has the examples of a subcommand, with "%[1]s" for its words.
	// Examples has those of the verb itself.
	Example, Examples string
	// KindExample returns further examples for a kind, like Example, or "".
	KindExample func(controllers.Kind) string
	// Flags adds the flags of all kinds, KindFlags those of one kind.
	Flags     func(*pflag.FlagSet)
	KindFlags func(controllers.Kind, *pflag.FlagSet)
	Run       func(cmd *cobra.Command, s Selection) error
	// Every returns the kinds that "all" selects, nil for all that the verb
	// applies to.
	Every func() []controllers.Kind
	// Explicit verbs require a kind.
	Explicit bool
	// Single verbs accept one object only.
	Single bool
}

// Families lists the commands that group kinds, such as source.
var Families = []struct{ Word, plural, Short string }{
	{"source", "sources", "source"},
	{"image", "images", "image automation"},
	{"artifact", "artifacts", "artifact"},
}

// NewCommand returns the command of a verb with a subcommand for each kind that
// it applies to. The command itself accepts "all", KIND,KIND and KIND/NAME.
func NewCommand(a *app.App, v Verb) *cobra.Command {
	root := &cobra.Command{
		Use: v.Name + " [kind/name ...]", Short: v.Short, Long: v.Short + ".\n\n" + Help,
		Example: v.Examples, ValidArgsFunction: completeSelection(a, v),
		Args: cobra.ArbitraryArgs, // parsed by selected
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

// Help is the part of the help of a verb about the selection of objects.
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

// example returns the examples of the subcommand of a kind.
func (v Verb) example(k controllers.Kind) string {
	text := v.Example
	if v.KindExample != nil {
		text += v.KindExample(k)
	}
	return strings.Trim(fmt.Sprintf(text, k.Noun()), "\n")
}

func kindCommand(a *app.App, v Verb, k controllers.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use:               k.Word + " [name]",
		Short:             fmt.Sprintf(v.Of, k.Kind),
		Example:           v.example(k),
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
