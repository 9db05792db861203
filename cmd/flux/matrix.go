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
	// example has "%[1]s" where the words of the kind go.
	example string
	// flags of all kinds, and those of one.
	flags     func(*pflag.FlagSet)
	kindFlags func(controllers.Kind, *pflag.FlagSet)
	run       func(cmd *cobra.Command, k controllers.Kind, names []string) error
	// family runs what a family's word alone does; nil shows help.
	family func(cmd *cobra.Command, rows []controllers.Kind) error
}

// families are the words above kinds, with their plurals.
var families = []struct{ word, plural, short string }{
	{"source", "sources", "sources"},
	{"image", "images", "image automation objects"},
	{"artifact", "artifacts", "artifact generators"},
}

// multiply makes the commands of a verb on every kind that it applies to.
func (a *app) multiply(v verb) *cobra.Command {
	root := group(v.name, v.short)
	if v.flags != nil {
		v.flags(root.PersistentFlags())
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

func (a *app) familyCommand(v verb, word, plural, what string) []*cobra.Command {
	var children []*cobra.Command
	var rows []controllers.Kind
	for _, k := range controllers.Family(word) {
		if k.Has(v.applies) {
			children, rows = append(children, a.kindCommand(v, k)), append(rows, k)
		}
	}
	if len(children) == 0 {
		return nil
	}
	short := v.short[:strings.Index(v.short, " ")] + " " + what
	cmd := group(word, short, children...)
	if v.plural {
		cmd.Use, cmd.Aliases = plural, []string{word}
	}
	if v.family != nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return v.family(cmd, rows) }
	}
	return []*cobra.Command{cmd}
}

func (a *app) kindCommand(v verb, k controllers.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use:               k.Word + " [name]",
		Short:             fmt.Sprintf(v.of, k.Kind),
		Example:           strings.TrimRight(fmt.Sprintf(v.example, k.Noun()), "\n"),
		ValidArgsFunction: a.completeNames(k),
		RunE:              func(cmd *cobra.Command, names []string) error { return v.run(cmd, k, names) },
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
