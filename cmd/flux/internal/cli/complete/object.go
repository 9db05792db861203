package complete

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/suggest"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Names completes the object names of a kind, with -A in all namespaces. Names that are
// already on the command line are omitted.
func Names(a *app.App, k controllers.Kind) cobra.CompletionFunc {
	return NamesOf(a, ByKind([]controllers.Kind{k}), "")
}

// Finder returns the names of the objects in a namespace, "" for all namespaces.
type Finder func(context.Context, *kube.Client, string) ([]string, error)

// ByKind returns a Finder for objects of Flux kinds.
func ByKind(kinds []controllers.Kind) Finder {
	return func(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
		found := make([][]string, len(kinds))
		failures := make([]error, len(kinds))
		var wg sync.WaitGroup
		for i, k := range kinds {
			wg.Go(func() {
				failures[i] = client.WithServedVersion(ctx, k, func(r kube.Resource) (err error) {
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
		return names, nil // kinds that cannot be listed are skipped
	}
}

// ByWord returns a Finder for the objects of a kind or resource type.
func ByWord(word string) Finder {
	if kinds := controllers.KindsNamed(word); len(kinds) > 0 {
		return ByKind(kinds)
	}
	return func(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
		r, err := client.Discovery().Named(ctx, word)
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

// NamesOf completes object names in a namespace, by default the namespace of the command.
func NamesOf(a *app.App, find Finder, namespace string) cobra.CompletionFunc {
	return FromCluster(a, func(ctx context.Context, cmd *cobra.Command, client *kube.Client) ([]string, error) {
		in := namespace
		if f := cmd.Flags().Lookup("all-namespaces"); in == "" && (f == nil || f.Value.String() != "true") {
			var err error
			if in, err = a.Namespace(cmd); err != nil {
				return nil, err
			}
		}
		return find(ctx, client, in)
	})
}

// KindAndName completes KIND/NAME and KIND/NAMESPACE/NAME for a set of kinds.
func KindAndName(a *app.App, rows []controllers.Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(prefix, "/") {
			return NameAfterKind(a)(cmd, args, prefix)
		}
		var words []string
		for _, w := range KindWords(rows, prefix) {
			words = append(words, w+"/")
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// NameAfterKind completes the name in KIND/NAME and KIND/NAMESPACE/NAME.
func NameAfterKind(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		before, last := "", prefix
		if i := strings.LastIndex(prefix, ","); i >= 0 {
			before, last = prefix[:i+1], prefix[i+1:]
		}
		ref, rest := objref.CutKind(strings.Split(last, "/"))
		if len(rest) == 0 || len(rest) > 2 || len(ref.Kinds) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, start := "", ref.Word+"/"
		if len(rest) == 2 {
			namespace, start = rest[0], start+rest[0]+"/"
		}
		names, directive := NamesOf(a, ByWord(ref.Word), namespace)(cmd, nil, rest[len(rest)-1])
		for i := range names {
			names[i] = before + start + names[i]
		}
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
	}
}

// OfSubcommands completes the name in KIND/NAME for a command whose subcommands are kinds.
func OfSubcommands(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ref, _ := objref.CutKind(strings.Split(prefix, "/"))
		named := func(arg string) bool { return strings.Contains(arg, "/") }
		if len(args) > 0 && !slices.ContainsFunc(args, named) || len(ref.Kinds) != 1 || suggest.OfKind(cmd, ref.Kinds[0]) == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return NameAfterKind(a)(cmd, args, prefix)
	}
}

// FluxObjects completes a flag that takes a Flux object as KIND/NAME.
func FluxObjects(a *app.App) cobra.CompletionFunc { return KindAndName(a, controllers.Known) }

// Object completes KIND NAME and KIND/NAME.
func Object(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 && strings.Contains(prefix, "/"):
			return NameAfterKind(a)(cmd, args, prefix)
		case len(args) == 0:
			return KindWords(controllers.Known, prefix), cobra.ShellCompDirectiveNoFileComp
		case len(args) > 1 || strings.Contains(args[0], "/") || len(controllers.KindsNamed(args[0])) > 1:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return NamesOf(a, ByWord(args[0]), "")(cmd, nil, prefix)
	}
}

// KindWords completes kinds, one word for each kind: the short name, or the full
// name if the short name does not start with prefix.
func KindWords(rows []controllers.Kind, prefix string) []string {
	var words []string
	for i, short := range objref.KindWords(rows) {
		if strings.HasPrefix(short, prefix) {
			words = append(words, short)
		} else {
			words = append(words, strings.ToLower(rows[i].Kind))
		}
	}
	return Matching(words, nil, prefix)
}

// Subjects completes the arguments of objref.ParseSubjects.
func Subjects(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 && strings.Contains(prefix, ",") && !strings.Contains(prefix, "/") {
			return List(objref.KindWords(controllers.Known))(cmd, args, prefix)
		}
		if len(args) > 0 && strings.Contains(args[0], "/") {
			return KindAndName(a, controllers.Known)(cmd, args, prefix)
		}
		if len(args) > 0 && !strings.Contains(args[0], ",") {
			words, directive := Object(a)(cmd, args[:1], prefix)
			return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(args, word) }), directive
		}
		return Object(a)(cmd, args, prefix)
	}
}
