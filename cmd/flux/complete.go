package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// completionTime bounds a completion: a shell that hangs is worse than none.
const completionTime = 1500 * time.Millisecond

// completeNamespaces offers the cluster's namespaces.
func (a *app) completeNamespaces() cobra.CompletionFunc {
	namespaces := controllers.Kind{Version: "v1", Kind: "Namespace", Resource: "namespaces"}
	return a.completeFrom(func(ctx context.Context, _ *cobra.Command, client *kube.Client) ([]string, error) {
		var names []string
		err := client.Metadata(ctx, kube.Of(namespaces), kube.Selection{}, func(o controllers.Object) {
			names = append(names, controllers.Name(o))
		})
		return names, err
	})
}

// completeFrom offers what the cluster answers in time. An error offers
// nothing: the shell has no place for it, and the command will say it.
func (a *app) completeFrom(ask func(context.Context, *cobra.Command, *kube.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		answer := make(chan []string, 1)
		// A program that the kubeconfig names for credentials heeds no context,
		// so that this one may be left behind when the process ends.
		go func() {
			client, err := a.completionClient(cmd)
			if err != nil {
				answer <- nil
				return
			}
			words, err := ask(ctx, cmd, client)
			if err != nil {
				words = nil
			}
			answer <- words
		}()
		select {
		case words := <-answer:
			return offered(words, given, prefix), cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// completionClient makes the client as the command would: cobra does not run
// what goes before a command when it only completes.
func (a *app) completionClient(cmd *cobra.Command) (*kube.Client, error) {
	if err := config.Apply(cmd.Root().PersistentFlags(), a.env); err != nil {
		return nil, err
	}
	return a.cluster()
}

func offered(words, given []string, prefix string) []string {
	words = slices.DeleteFunc(words, func(word string) bool {
		return !strings.HasPrefix(word, prefix) || slices.Contains(given, word)
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// completeConfig offers names out of the kubeconfig.
func (a *app) completeConfig(names func(api.Config) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if err := config.Apply(cmd.Root().PersistentFlags(), a.env); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		raw, err := a.global.kube.Raw()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offered(names(raw), nil, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

func namesIn[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for key := range m {
		list = append(list, key)
	}
	return list
}

// completeEveryFlag gives every flag below a command that has no completion of its
// own the one for its name or its type. Only a completion needs them.
func (a *app) completeEveryFlag(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if _, has := cmd.GetFlagCompletionFunc(f.Name); !has {
			if values := a.flagValues(f); values != nil {
				completeFlag(cmd, f.Name, values)
			}
		}
	}
	cmd.PersistentFlags().VisitAll(complete)
	cmd.Flags().VisitAll(complete)
	for _, child := range cmd.Commands() {
		a.completeEveryFlag(child)
	}
}

func (a *app) flagValues(f *pflag.Flag) cobra.CompletionFunc {
	if c, ok := f.Value.(choice); ok {
		return cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp)
	}
	switch f.Name {
	case "namespace":
		return a.completeNamespaces()
	case "context":
		return a.completeConfig(func(c api.Config) []string { return namesIn(c.Contexts) })
	case "cluster":
		return a.completeConfig(func(c api.Config) []string { return namesIn(c.Clusters) })
	case "user":
		return a.completeConfig(func(c api.Config) []string { return namesIn(c.AuthInfos) })
	case "output":
		return cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
	case "components":
		return listCompletion(controllers.Names(func(controllers.Controller) bool { return true }))
	case "components-extra":
		return listCompletion(controllers.Extras())
	}
	if t := f.Value.Type(); t != "string" && t != "stringSlice" && t != "stringArray" {
		return cobra.NoFileCompletions
	}
	return nil
}
