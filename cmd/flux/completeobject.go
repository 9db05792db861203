package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// completeNames offers the names of the objects of a kind, of all namespaces
// with -A, and none that the line has already.
func (a *app) completeNames(k controllers.Kind) cobra.CompletionFunc {
	return a.completeNamesOf(kindResources([]controllers.Kind{k}), "")
}

// resourceFinder returns the names of the objects that a completion is about.
type resourceFinder func(context.Context, *kube.Client, string) ([]string, error)

// kindResources finds the objects of kinds of Flux.
func kindResources(kinds []controllers.Kind) resourceFinder {
	return func(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
		found := make([][]string, len(kinds))
		failures := make([]error, len(kinds))
		var wg sync.WaitGroup
		for i, k := range kinds {
			wg.Go(func() {
				failures[i] = client.With(ctx, k, func(r kube.Resource) (err error) {
					found[i], err = resourceNames(ctx, client, r, namespace)
					return err
				})
			})
		}
		wg.Wait()
		names := slices.Concat(found...)
		if len(names) == 0 {
			return nil, failures[0]
		}
		return names, nil // a kind that may not be listed does not hide the others
	}
}

// wordResources finds the objects of what a word of kubectl means.
func wordResources(word string) resourceFinder {
	if kinds := controllers.KindsNamed(word); len(kinds) > 0 {
		return kindResources(kinds)
	}
	return func(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
		r, err := client.Named(ctx, word)
		if err != nil {
			return nil, err
		}
		if r.ClusterScoped {
			namespace = ""
		}
		return resourceNames(ctx, client, r, namespace)
	}
}

func resourceNames(ctx context.Context, client *kube.Client, r kube.Resource, namespace string) ([]string, error) {
	var names []string
	err := client.Metadata(ctx, r, kube.Selection{Namespace: namespace}, func(o controllers.Object) {
		names = append(names, controllers.Name(o))
	})
	return names, err
}

// completeNamesOf offers names of one namespace, that of the command line for "".
func (a *app) completeNamesOf(find resourceFinder, namespace string) cobra.CompletionFunc {
	return a.completeFrom(func(ctx context.Context, cmd *cobra.Command, client *kube.Client) ([]string, error) {
		in := namespace
		if f := cmd.Flags().Lookup("all-namespaces"); in == "" && (f == nil || f.Value.String() != "true") {
			var err error
			if in, err = a.namespace(cmd); err != nil {
				return nil, err
			}
		}
		return find(ctx, client, in)
	})
}

// completeSelection offers what may follow a verb beside its commands: kinds
// between commas and their names, KIND/NAME, and "all".
func (a *app) completeSelection(v verb) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 && strings.Contains(prefix, "/"):
			return a.completeSlash(cmd, args, prefix)
		case len(args) == 0 && strings.Contains(prefix, ","):
			return listCompletion(kindWords(v.rows()))(cmd, args, prefix)
		case len(args) == 0:
			return v.words(cmd, prefix), cobra.ShellCompDirectiveNoFileComp
		case strings.Contains(args[0], "/"):
			return a.completeSlashIn(v.rows())(cmd, args, prefix)
		}
		s, err := v.ofKinds(cmd, strings.Split(args[0], ","), nil)
		if err != nil || args[0] == everyKind {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeNamesOf(kindResources(s.kinds), "")(cmd, args[1:], prefix)
	}
}

// words are those that stand in the place of a command of the verb.
func (v verb) words(cmd *cobra.Command, prefix string) []string {
	has := slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == everyKind })
	if v.explicit || v.single || has {
		return nil
	}
	return offered([]string{everyKind}, nil, prefix)
}

// completeSlashIn offers the words for kinds with a slash behind, then what is
// behind the slash.
func (a *app) completeSlashIn(rows []controllers.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(prefix, "/") {
			return a.completeSlash(cmd, args, prefix)
		}
		var words []string
		for _, w := range offeredKinds(rows, prefix) {
			words = append(words, w+"/")
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeSlash offers the objects of KIND/ and KIND/NAMESPACE/.
func (a *app) completeSlash(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	before, last := "", prefix
	if i := strings.LastIndex(prefix, ","); i >= 0 {
		before, last = prefix[:i+1], prefix[i+1:]
	}
	ref, rest := cutKind(strings.Split(last, "/"))
	if len(rest) == 0 || len(rest) > 2 || len(ref.kinds) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, start := "", ref.word+"/"
	if len(rest) == 2 {
		namespace, start = rest[0], start+rest[0]+"/"
	}
	names, directive := a.completeNamesOf(wordResources(ref.word), namespace)(cmd, nil, rest[len(rest)-1])
	for i := range names {
		names[i] = before + start + names[i]
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
}

// completeSubject offers objects of Flux as a flag takes them: KIND/NAME.
func (a *app) completeSubject() cobra.CompletionFunc { return a.completeSlashIn(controllers.Kinds) }

// completeObject completes KIND NAME and KIND/NAME.
func (a *app) completeObject(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0 && strings.Contains(prefix, "/"):
		return a.completeSlash(cmd, args, prefix)
	case len(args) == 0:
		return offeredKinds(controllers.Kinds, prefix), cobra.ShellCompDirectiveNoFileComp
	case len(args) > 1 || strings.Contains(args[0], "/") || len(controllers.KindsNamed(args[0])) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNamesOf(wordResources(args[0]), "")(cmd, nil, prefix)
}

// offeredKinds are words for the kinds that begin with a prefix, one for each
// kind: its short name or, where that does not, the whole one.
func offeredKinds(rows []controllers.Kind, prefix string) []string {
	var words []string
	for i, short := range kindWords(rows) {
		if strings.HasPrefix(short, prefix) {
			words = append(words, short)
		} else {
			words = append(words, strings.ToLower(rows[i].Kind))
		}
	}
	return offered(words, nil, prefix)
}
