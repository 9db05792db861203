// Package complete provides shell completion for arguments and flags.
package complete

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Namespaces completes the namespaces of the cluster.
func Namespaces(a *app.App) cobra.CompletionFunc {
	namespaces := controllers.Kind{Version: "v1", Kind: "Namespace", Resource: "namespaces"}
	return FromCluster(a, func(ctx context.Context, _ *cobra.Command, client *kube.Client) ([]string, error) {
		var names []string
		err := client.Metadata(ctx, kube.Of(namespaces), kube.Selection{}, func(o controllers.Object) {
			names = append(names, controllers.Name(o))
		})
		return names, err
	})
}

// FromCluster completes the values that list returns in time. It hides
// errors: a completion cannot show them, and the command reports them when it
// runs.
func FromCluster(a *app.App, list func(context.Context, *cobra.Command, *kube.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.BriefTimeout)
		defer cancel()
		result := make(chan []string, 1)
		// An exec credential plugin of the kubeconfig ignores the context, so that
		// the goroutine may run until the process exits.
		go func() {
			client, err := client(a, cmd)
			if err != nil {
				result <- nil
				return
			}
			values, err := list(ctx, cmd, client)
			if err != nil {
				values = nil
			}
			result <- values
		}()
		select {
		case values := <-result:
			return Matching(values, given, prefix), cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// client returns the client with the settings of the command, because cobra does
// not run PersistentPreRunE for a completion.
func client(a *app.App, cmd *cobra.Command) (*kube.Client, error) {
	if err := config.Apply(cmd.Root().PersistentFlags(), a.Env); err != nil {
		return nil, err
	}
	return a.Client()
}

// Matching returns the sorted distinct words with a prefix that are not already
// on the command line.
func Matching(words, given []string, prefix string) []string {
	words = slices.DeleteFunc(words, func(word string) bool {
		return !strings.HasPrefix(word, prefix) || slices.Contains(given, word)
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// fromKubeconfig completes names of the kubeconfig.
func fromKubeconfig(a *app.App, names func(api.Config) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if err := config.Apply(cmd.Root().PersistentFlags(), a.Env); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		raw, err := a.Global.Kube.Raw()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return Matching(names(raw), nil, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// Contexts completes kubeconfig contexts and context groups.
func Contexts(a *app.App) cobra.CompletionFunc {
	return fromKubeconfig(a, func(c api.Config) []string {
		groups, _ := config.ContextGroups(a.Env) // the command reports the error
		return append(namesIn(c.Contexts), namesIn(groups)...)
	})
}

func namesIn[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for key := range m {
		list = append(list, key)
	}
	return list
}

// EveryFlag registers a default completion, by name or type, for the flags of a
// command and its subcommands that have none.
func EveryFlag(a *app.App, cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if _, has := cmd.GetFlagCompletionFunc(f.Name); !has {
			if values := flagValues(a, f); values != nil {
				Flag(cmd, f.Name, values)
			}
		}
	}
	cmd.PersistentFlags().VisitAll(complete)
	cmd.Flags().VisitAll(complete)
	for _, child := range cmd.Commands() {
		EveryFlag(a, child)
	}
}

func flagValues(a *app.App, f *pflag.Flag) cobra.CompletionFunc {
	if c, ok := f.Value.(interface{ Choices() []string }); ok {
		return cobra.FixedCompletions(c.Choices(), cobra.ShellCompDirectiveNoFileComp)
	}
	switch f.Name {
	case "namespace":
		return Namespaces(a)
	case "context":
		return Contexts(a)
	case "cluster":
		return fromKubeconfig(a, func(c api.Config) []string { return namesIn(c.Clusters) })
	case "user":
		return fromKubeconfig(a, func(c api.Config) []string { return namesIn(c.AuthInfos) })
	case "output":
		return cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
	case "components":
		return List(controllers.Names(func(controllers.Controller) bool { return true }))
	case "components-extra":
		return List(controllers.Extras())
	}
	if t := f.Value.Type(); t != "string" && t != "stringSlice" && t != "stringArray" {
		return cobra.NoFileCompletions
	}
	return nil
}
