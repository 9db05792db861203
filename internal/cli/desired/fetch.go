package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/pkg/build"
)

// Fetcher has what is not in folders here: what source-controller has
// fetched, and, where it has not or is not to be asked, what an OCIRepository
// wants of its registry.
type Fetcher struct {
	*app.App
	O      *BuildOptions
	Work   WorkTree
	Stored *StoredSources
	// Say tells what is being done.
	Say func(format string, args ...any)
}

// Beyond are local sources, and all others that can be fetched.
func (f *Fetcher) Beyond(local build.Sources) build.Sources {
	return func(ctx context.Context, source build.Reference) (fs.FS, error) {
		tree, err := local(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return f.fetch(ctx, source)
		}
		return tree, err
	}
}

func (f *Fetcher) fetch(ctx context.Context, source build.Reference) (fs.FS, error) {
	if f.O.DryRun {
		return f.unasked(ctx, source)
	}
	f.Say("fetching what %s has", source)
	if f.Stored == nil {
		client, err := f.Client()
		if err != nil {
			return nil, err
		}
		f.Stored = &StoredSources{Client: client, Home: f.FluxNamespace()}
	}
	tree, err := f.Stored.Tree(ctx, source)
	var absent *objref.NotFoundError
	switch {
	case err == nil:
		return tree, nil
	case errors.As(err, &absent) && f.Work.git:
		return f.unasked(ctx, source) // the repository may bring it
	case errors.As(err, &absent):
		return nil, build.ErrNotFound
	case source.Kind == "OCIRepository" && ctx.Err() == nil:
		if t, err := f.Stored.Object(ctx, source); err == nil {
			return f.pulled(ctx, &unstructured.Unstructured{Object: t.Object})
		}
	}
	return nil, f.unfetched(source, err)
}

// unasked is a source that only the repository tells of.
func (f *Fetcher) unasked(ctx context.Context, source build.Reference) (fs.FS, error) {
	alone := *f.O
	alone.DryRun = true
	object, err := findSource(ctx, f.App, &alone, f.Work, source)
	if err != nil {
		return nil, err
	}
	switch source.Kind {
	case "OCIRepository":
		return f.pulled(ctx, object)
	case "GitRepository":
		return nil, build.ErrNotFound
	}
	return nil, f.unfetched(source, errors.New("only source-controller can fetch it, and it is not on the cluster or must not be asked for"))
}

// pulled is what an OCIRepository wants, from its registry.
func (f *Fetcher) pulled(ctx context.Context, repository *unstructured.Unstructured) (fs.FS, error) {
	got, err := OCITree(ctx, repository, RegistryReference(repository), lookupFor(f.App, f.O, f.Work), missingFor(f.App, f.O, "credentials", "docker login"))
	if err != nil {
		return nil, f.unfetched(build.ReferenceTo(repository), err)
	}
	return got.Tree, nil
}

func (f *Fetcher) unfetched(source build.Reference, err error) error {
	return clierr.WithHint(fmt.Sprintf("name its folder with --local-sources %s=PATH", source), "fetching its source %s: %w", source, err)
}
