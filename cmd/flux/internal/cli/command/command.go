// Package command provides argument checks and flag values for the cobra
// commands of flux.
package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/suggest"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NoSubcommand is the cobra.PositionalArgs of a command that has only
// subcommands: an argument is an unknown command.
func NoSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := suggest.Command(cmd, args[0]); near != "" {
		return &hint.Error{Err: err, Hint: fmt.Sprintf("did you mean '%s'?", near)}
	}
	return &hint.Error{Err: err, Hint: fmt.Sprintf("run '%s --help' to see its commands", cmd.CommandPath())}
}

// NoSubcommandOrObject is NoSubcommand for a command whose subcommands are kinds: an argument may be
// the name of an object without its kind.
func NoSubcommandOrObject(cmd *cobra.Command, args []string) error {
	err := NoSubcommand(cmd, args)
	var unknown *hint.Error
	word := kindOf(cmd)
	if word == "" || strings.Contains(strings.Join(args, ""), "/") || !errors.As(err, &unknown) || strings.HasPrefix(unknown.Hint, "did you mean") {
		return err
	}
	return hint.Errorf(fmt.Sprintf("%s, or specify the kind of the object: %s %s/%s", unknown.Hint, cmd.CommandPath(), word, args[0]), "%w", unknown.Err)
}

// kindOf returns the shortest word of a kind that is a subcommand, preferably Kustomization.
func kindOf(cmd *cobra.Command) string {
	first := ""
	for _, child := range cmd.Commands() {
		k, ok := kindNamed(child.Name())
		switch word := cmp.Or(k.Short, k.Word); {
		case ok && k.Kind == controllers.Kustomization:
			return word
		case ok && first == "":
			first = word
		}
	}
	return first
}

// kindNamed returns the kind of a subcommand name.
func kindNamed(name string) (controllers.Kind, bool) {
	i := slices.IndexFunc(controllers.Known, func(k controllers.Kind) bool { return k.Family == "" && (k.Word == name || k.Plural == name) })
	if i < 0 {
		return controllers.Kind{}, false
	}
	return controllers.Known[i], true
}

// ObjectGroup is Group for a command whose subcommands are kinds. It also accepts KIND/NAME, see WithKind.
func ObjectGroup(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := Group(use, short, children...)
	cmd.Args = NoSubcommandOrObject
	return cmd
}

// objectGroups lists the commands that ObjectGroup returns.
func objectGroups() []string { return []string{"build", "debug", "diff", "trigger"} }

// WithKind replaces the argument KIND/NAME of an ObjectGroup command with the subcommand of the kind and the name,
// so that cobra parses the flags of the subcommand. A namespace in the argument becomes --namespace. Of several such arguments,
// the first selects the subcommand, which parses all of them.
func WithKind(root *cobra.Command, args []string) []string {
	group, _, _ := root.Find(args) // errors are due to the arguments, which are handled below
	if group == nil || group.Parent() != root || !slices.Contains(objectGroups(), group.Name()) {
		return args
	}
	for i := range args {
		ref, ok := objectAt(args, i)
		if !ok {
			continue
		}
		child := suggest.OfKind(group, ref.Kinds[0])
		if child == nil {
			continue
		}
		for j := i + 1; j < len(args); j++ {
			if _, ok := objectAt(args, j); ok {
				return slices.Insert(slices.Clone(args), i, child.Name())
			}
		}
		words := slices.Concat(args[:i], []string{child.Name(), ref.Name}, args[i+1:])
		if ref.Namespace != "" {
			words = append(words, "--namespace="+ref.Namespace) // the last one takes precedence
		}
		return words
	}
	return args
}

// objectAt returns the argument KIND/NAME at an index. An argument after a flag may be its value.
func objectAt(args []string, i int) (objref.Ref, bool) {
	if i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") || !strings.Contains(args[i], "/") {
		return objref.Ref{}, false
	}
	ref, ok := objref.Parse([]string{args[i]})
	return ref, ok && len(ref.Kinds) == 1
}

// Group returns a command that has only subcommands.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return clierr.Usage(cmd, "a command is required") },
	}
	cmd.AddCommand(children...)
	return cmd
}
