package root

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// hintsMax is the maximum number of hints of one command.
	hintsMax = 5
	// namespacesMax is the maximum number of namespaces in a hint.
	namespacesMax = 3
)

// newSuggest returns a function that suggests an alternative for a missing object: the same name in
// another namespace, or a similar name. Only the first hintsMax errors of a command cause requests.
func newSuggest(ctx context.Context, a *app.App) func(*objref.NotFoundError) string {
	var hints atomic.Int32
	return func(e *objref.NotFoundError) string {
		if hints.Add(1) > hintsMax {
			return ""
		}
		client, err := a.Client()
		if err != nil {
			return ""
		}
		ctx, cancel := context.WithTimeout(ctx, a.BriefTimeout)
		defer cancel()
		if e.Target.Namespace != "" {
			if hint := namespaceHint(namespacesWith(ctx, client, e)); hint != "" {
				return hint
			}
		}
		return similarName(ctx, client, e)
	}
}

// namespacesWith returns the namespaces that have an object with the name.
func namespacesWith(ctx context.Context, client *kube.Client, e *objref.NotFoundError) []string {
	found := metadataOf(ctx, client, e.AllKinds(), kube.Selection{Name: e.Target.Name}, controllers.Namespace)
	slices.Sort(found)
	return slices.Compact(found)
}

// similarName suggests the nearest name in the namespace. For a name without a
// kind it considers Kustomizations and HelmReleases only.
func similarName(ctx context.Context, client *kube.Client, e *objref.NotFoundError) string {
	kinds := e.AllKinds()
	if len(kinds) > 1 {
		kinds = objref.ApplicationKinds()
	}
	near := hint.Nearest{Word: e.Target.Name}
	for _, name := range metadataOf(ctx, client, kinds, kube.Selection{Namespace: e.Target.Namespace}, controllers.Name) {
		near.Try(name, []string{name})
	}
	if name := near.Best(); name != "" {
		return fmt.Sprintf("did you mean %s?", name)
	}
	return ""
}

// metadataOf lists the objects of several kinds concurrently and returns the
// result of get for each object. Kinds that cannot be listed are skipped,
// because a hint is optional.
func metadataOf(ctx context.Context, client *kube.Client, kinds []controllers.Kind, s kube.Selection, get func(controllers.Object) string) []string {
	found := make([][]string, len(kinds))
	var wg sync.WaitGroup
	for i, k := range kinds {
		wg.Go(func() {
			err := client.WithServedVersion(ctx, k, func(r kube.Resource) error {
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

// namespaceHint returns the hint for an object that exists in other namespaces.
func namespaceHint(namespaces []string) string {
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
