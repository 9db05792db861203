// Package suggest finds the intended command or flag for a misspelled one.
package suggest

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Command returns the subcommand of cmd whose name is most similar to word, or "". For a verb, it
// also considers the names of kinds, including the names that kubectl accepts.
func Command(cmd *cobra.Command, word string) string {
	near := hint.Nearest{Word: strings.ToLower(word)}
	if !cmd.HasParent() {
		for _, child := range cmd.Commands() {
			near.Try(child.CommandPath(), append([]string{child.Name()}, child.Aliases...))
		}
		return near.Best()
	}
	for _, child := range cmd.Commands() {
		near.Try(child.CommandPath(), commandWords(child))
	}
	verb := cmd
	for verb.Parent().HasParent() {
		verb = verb.Parent()
	}
	for _, child := range verb.Commands() {
		near.Try(child.CommandPath(), commandWords(child))
		for _, grandchild := range child.Commands() {
			near.Try(grandchild.CommandPath(), commandWords(grandchild))
		}
	}
	return near.Best()
}

// OfKind returns the subcommand for a kind, or nil.
func OfKind(cmd *cobra.Command, k controllers.Kind) *cobra.Command {
	for _, child := range cmd.Commands() {
		if child.Name() == k.Word || child.HasAlias(strings.ToLower(k.Kind)) {
			return child
		}
	}
	return nil
}

// commandWords returns the names of a command and of its kind, if any.
func commandWords(cmd *cobra.Command) []string {
	words := append([]string{cmd.Name()}, cmd.Aliases...)
	family := append([]string{cmd.Parent().Name()}, cmd.Parent().Aliases...)
	for _, k := range controllers.Known {
		below := k.Family == "" && !cmd.Parent().Parent().HasParent() || slices.Contains(family, k.Family)
		if below && slices.Contains(words, k.Word) && !cmd.HasSubCommands() {
			return append(words, k.Words()...)
		}
	}
	return words
}

// Flag returns the flag of cmd with the name most similar to flag, "" if none is
// similar.
func Flag(cmd *cobra.Command, flag string) string {
	near := hint.Nearest{Word: flag}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			near.Try("--"+f.Name, []string{f.Name})
		}
	})
	return near.Best()
}
