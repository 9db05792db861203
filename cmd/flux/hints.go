package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// A hint is worth little waiting, and a hundred misspelt names need no
	// hundred of them.
	hintTime = 2 * time.Second
	hintsMax = 5
	// namespacesMax is how many namespaces a hint names.
	namespacesMax = 3
)

// newSuggest returns what looks for the object that a name was meant to be: one
// of that name in another namespace, or one of a similar name. It asks the
// cluster only for the first few errors of a command.
func (a *app) newSuggest(ctx context.Context) func(*notFoundError) string {
	var asked atomic.Int32
	return func(e *notFoundError) string {
		if asked.Add(1) > hintsMax {
			return ""
		}
		client, err := a.cluster()
		if err != nil {
			return ""
		}
		ctx, cancel := context.WithTimeout(ctx, hintTime)
		defer cancel()
		if e.target.namespace != "" {
			if hint := foundElsewhere(namespacesWith(ctx, client, e)); hint != "" {
				return hint
			}
		}
		return similarName(ctx, client, e)
	}
}

// namespacesWith are those that have an object of the name.
func namespacesWith(ctx context.Context, client *kube.Client, e *notFoundError) []string {
	found := metadataOf(ctx, client, e.kinds(), kube.Selection{Name: e.target.name}, controllers.Namespace)
	slices.Sort(found)
	return slices.Compact(found)
}

// similarName suggests the nearest name in the namespace. A name alone mostly
// means a Kustomization or a HelmRelease.
func similarName(ctx context.Context, client *kube.Client, e *notFoundError) string {
	kinds := e.kinds()
	if len(kinds) > 1 {
		kinds = applyingKinds()
	}
	near := nearest{word: e.target.name}
	for _, name := range metadataOf(ctx, client, kinds, kube.Selection{Namespace: e.target.namespace}, controllers.Name) {
		near.try(name, []string{name})
	}
	if name := near.meant(); name != "" {
		return fmt.Sprintf("did you mean %s?", name)
	}
	return ""
}

// metadataOf lists objects of kinds at once and returns what get has of each.
// What may not be listed gives no hint.
func metadataOf(ctx context.Context, client *kube.Client, kinds []controllers.Kind, s kube.Selection, get func(controllers.Object) string) []string {
	found := make([][]string, len(kinds))
	var wg sync.WaitGroup
	for i, k := range kinds {
		wg.Go(func() {
			err := client.With(ctx, k, func(r kube.Resource) error {
				found[i] = nil
				return client.Metadata(ctx, r, s, func(o controllers.Object) { found[i] = append(found[i], get(o)) })
			})
			if err != nil {
				found[i] = nil
			}
		})
	}
	wg.Wait()
	return slices.Concat(found...)
}

// hint is the remedy of errors that only the cluster or the catalogue knows.
func (a *app) hint(err error) string {
	var notFound *notFoundError
	var absent *kube.MissingKindError
	var unknown *kube.UnknownWordError
	var ambiguous *kube.AmbiguousWordError
	var version *kube.NotServedVersionError
	switch {
	case errors.As(err, &notFound) && a.suggest != nil:
		return orElse(a.suggest(notFound), notFound.remedy())
	case errors.As(err, &absent):
		return bringsKind(absent.Kind)
	case errors.As(err, &unknown):
		return "'kubectl api-resources' lists the resource types of the cluster"
	case errors.As(err, &ambiguous):
		return "add the group, as in " + ambiguous.Resources[0]
	case errors.As(err, &version):
		return "use --api-version=" + version.Served[0]
	}
	return ""
}

func foundElsewhere(namespaces []string) string {
	switch n := len(namespaces); {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("found in namespace %q: use -n %s", namespaces[0], namespaces[0])
	case n <= namespacesMax:
		return fmt.Sprintf("found in the namespaces %s: use -n NAMESPACE", strings.Join(namespaces, ", "))
	default:
		return fmt.Sprintf("found in %d namespaces, such as %s: use -n NAMESPACE", n, strings.Join(namespaces[:namespacesMax], ", "))
	}
}

// bringsKind names the controller that a kind comes with and how to install it.
func bringsKind(k controllers.Kind) string {
	command := "flux install"
	if c, ok := controllers.Find(k.Controller); ok && c.Extra {
		command += " --components-extra=" + c.Name
	}
	return fmt.Sprintf("it comes with the %s: %s", k.Controller, command)
}

// nearestCommand returns the command that a misspelt word below cmd was meant
// to be, "" where none is near. Below a verb all words for kinds count, those
// of kubectl, too.
func nearestCommand(cmd *cobra.Command, word string) string {
	near := nearest{word: strings.ToLower(word)}
	if !cmd.HasParent() {
		for _, child := range cmd.Commands() {
			near.try(child.CommandPath(), append([]string{child.Name()}, child.Aliases...))
		}
		return near.meant()
	}
	for _, child := range cmd.Commands() {
		near.try(child.CommandPath(), commandWords(child))
	}
	verb := cmd
	for verb.Parent().HasParent() {
		verb = verb.Parent()
	}
	for _, child := range verb.Commands() {
		near.try(child.CommandPath(), commandWords(child))
		for _, grandchild := range child.Commands() {
			near.try(grandchild.CommandPath(), commandWords(grandchild))
		}
	}
	return near.meant()
}

// commandWords are the words for a command, and those for its kind if it is about one.
func commandWords(cmd *cobra.Command) []string {
	words := append([]string{cmd.Name()}, cmd.Aliases...)
	family := append([]string{cmd.Parent().Name()}, cmd.Parent().Aliases...)
	for _, k := range controllers.Kinds {
		below := k.Family == "" && !cmd.Parent().Parent().HasParent() || slices.Contains(family, k.Family)
		if below && slices.Contains(words, k.Word) && !cmd.HasSubCommands() {
			return append(words, k.Words()...)
		}
	}
	return words
}

// nearestFlag returns the flag that a misspelt one was meant to be, "" where none is near.
func nearestFlag(cmd *cobra.Command, flag string) string {
	near := nearest{word: flag}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			near.try("--"+f.Name, []string{f.Name})
		}
	})
	return near.meant()
}

// nearest keeps the best of what was tried.
type nearest struct {
	word     string
	best     string
	distance int
}

func (n *nearest) try(what string, words []string) {
	for _, word := range words {
		if d := distance(n.word, word); n.best == "" || d < n.distance {
			n.best, n.distance = what, d
		}
	}
}

// meant is the best if it is near enough to be what was meant.
func (n *nearest) meant() string {
	if n.distance > 2 || n.distance*3 > len(n.word) {
		return ""
	}
	return n.best
}

// distance counts the letters to insert, delete, replace or swap with the next
// one to make b of a (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
