// Package kinds builds the commands of a verb for the kinds of the catalog and
// selects the objects that the commands act on.
package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
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
	// Examples are the examples of the verb itself, OfKind the examples of its subcommands.
	Examples string
	OfKind   []Example
	// Flags adds the flags for all kinds, KindFlags the flags for one kind.
	Flags     func(*pflag.FlagSet)
	KindFlags func(controllers.Kind, *pflag.FlagSet)
	// Run runs the verb. Action replaces it for a verb that acts on objects.
	Run    func(cmd *cobra.Command, s Selection) error
	Action *Action
	// Every returns the kinds that "all" selects, nil for all that the verb
	// applies to.
	Every func() []controllers.Kind
	// Explicit verbs require a kind.
	Explicit bool
	// Single verbs require names.
	Single bool

	app *app.App
	// extensions are the kinds that named has found in the cluster.
	extensions map[string]controllers.Kind
}

// Family is a command that groups kinds. Short describes it in help.
type Family struct{ Word, plural, Short string }

// Families lists the commands that group kinds, such as source.
var Families = []Family{
	{"source", "sources", "source"},
	{"image", "images", "image automation"},
	{"artifact", "artifacts", "artifact"},
}

// NewCommand returns the command of a verb with a subcommand for each kind that
// it applies to. The command itself accepts "all", KIND,KIND and KIND/NAME.
func NewCommand(a *app.App, v Verb) *cobra.Command {
	v.app, v.extensions = a, map[string]controllers.Kind{}
	if v.Action != nil {
		v.attach(a)
	}
	root := &cobra.Command{
		Use: v.Name + " [kind/name ...]", Short: v.Short, Long: v.Short + ".\n\n" + v.help(),
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
	for _, k := range v.rows() {
		if k.Family == "" {
			root.AddCommand(kindCommand(a, v, k))
		}
	}
	return root
}

// Help is the help section on selecting objects.
const Help = `Selection:
  Select objects by KIND NAME, KIND/NAME or KIND/NAMESPACE/NAME, or all objects
  of kinds such as ks,hr, or all kinds with "all". See "flux help selectors".`

// help returns Help, without "all" for verbs that reject it.
func (v Verb) help() string {
	if v.Explicit || v.Single {
		return strings.Replace(Help, `, or all kinds with "all"`, "", 1)
	}
	return Help
}

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

// Example is an example of the subcommands of a verb.
type Example struct {
	// Text is a comment and commands, with %[1]s for the words of the kind, %[2]s
	// and %[3]s for the names of two objects, and %[4]s for a revision.
	Text string
	// For reports whether the example applies to a kind. If nil, it applies to all kinds.
	For func(controllers.Kind) bool
}

// Unless negates a condition of Example.
func Unless(condition func(controllers.Kind) bool) func(controllers.Kind) bool {
	return func(k controllers.Kind) bool { return !condition(k) }
}

// example returns the examples of the subcommand of a kind.
func (v Verb) example(k controllers.Kind) string {
	words := k.Noun()
	if i := slices.IndexFunc(Families, func(f Family) bool { return f.Word == k.Family }); v.Plural && i >= 0 {
		words = Families[i].plural + " " + k.Plural
	} else if v.Plural {
		words = k.Plural
	}
	var texts []string
	for _, e := range v.OfKind {
		if e.For == nil || e.For(k) {
			texts = append(texts, fmt.Sprintf(e.Text, words, cmp.Or(k.Examples.Names[0], "my-app"), cmp.Or(k.Examples.Names[1], "my-api"), k.Examples.Revision))
		}
	}
	return strings.Join(texts, "\n\n")
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
