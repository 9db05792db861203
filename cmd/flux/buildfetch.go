package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
)

// sourceFetcher has what is not in folders here: what source-controller has
// fetched, and, where it has not or is not to be asked, what an OCIRepository
// wants of its registry.
type sourceFetcher struct {
	*app
	o      *buildOptions
	work   workTree
	stored *storedSources
	// say tells what is being done.
	say func(format string, args ...any)
}

// beyond are local sources, and all others that can be fetched.
func (f *sourceFetcher) beyond(local build.Sources) build.Sources {
	return func(ctx context.Context, source build.Reference) (fs.FS, error) {
		tree, err := local(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return f.fetch(ctx, source)
		}
		return tree, err
	}
}

func (f *sourceFetcher) fetch(ctx context.Context, source build.Reference) (fs.FS, error) {
	if f.o.dryRun {
		return f.unasked(ctx, source)
	}
	f.say("fetching what %s has", source)
	if f.stored == nil {
		client, err := f.cluster()
		if err != nil {
			return nil, err
		}
		f.stored = &storedSources{client: client, home: f.fluxNamespace()}
	}
	tree, err := f.stored.tree(ctx, source)
	var absent *notFoundError
	switch {
	case err == nil:
		return tree, nil
	case errors.As(err, &absent) && f.work.git:
		return f.unasked(ctx, source) // the repository may bring it
	case errors.As(err, &absent):
		return nil, build.ErrNotFound
	case source.Kind == "OCIRepository" && ctx.Err() == nil:
		if t, err := f.stored.object(ctx, source); err == nil {
			return f.pulled(ctx, &unstructured.Unstructured{Object: t.object})
		}
	}
	return nil, f.unfetched(source, err)
}

// unasked is a source that only the repository tells of.
func (f *sourceFetcher) unasked(ctx context.Context, source build.Reference) (fs.FS, error) {
	alone := *f.o
	alone.dryRun = true
	object, err := f.findSource(ctx, &alone, f.work, source)
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
func (f *sourceFetcher) pulled(ctx context.Context, repository *unstructured.Unstructured) (fs.FS, error) {
	got, err := f.ociTree(ctx, repository, wantedOf(repository), f.lookupFor(f.o, f.work), f.missingFor(f.o, "credentials", "docker login"))
	if err != nil {
		return nil, f.unfetched(build.ReferenceTo(repository), err)
	}
	return got.tree, nil
}

func (f *sourceFetcher) unfetched(source build.Reference, err error) error {
	return hinted(fmt.Sprintf("name its folder with --local-sources %s=PATH", source), "fetching its source %s: %w", source, err)
}
