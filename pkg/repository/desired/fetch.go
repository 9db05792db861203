package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/web/egress"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// Fetcher fetches sources that have no local directory: the artifact from source-controller or, if
// source-controller has none or no cluster may be accessed, the OCI artifact from its registry.
type Fetcher struct {
	*Builder
	Work   git.Workspace
	Stored *upstream.StoredSources
}

// WithFetched returns sources that use local where possible and fetch all others.
func (f *Fetcher) WithFetched(local build.Sources) build.Sources {
	return func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		tree, err := local(ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			return f.fetch(ctx, source)
		}
		return tree, err
	}
}

func (f *Fetcher) fetch(ctx context.Context, source controllers.ID) (fs.FS, error) {
	if f.DryRun {
		return f.fetchFromWorkTree(ctx, source)
	}
	f.Announce("fetching the artifact of %s", source)
	if f.Stored == nil {
		client, err := f.Connect()
		if err != nil {
			return nil, err
		}
		f.Stored = &upstream.StoredSources{Client: client, Home: f.FluxNamespace}
	}
	tree, err := f.Stored.Tree(ctx, source)
	var absent *objref.NotFoundError
	switch {
	case err == nil:
		return tree, nil
	case errors.As(err, &absent) && f.Work.Git:
		return f.fetchFromWorkTree(ctx, source) // the source may be defined only in the work tree
	case errors.As(err, &absent):
		return nil, build.ErrNotFound
	case source.Kind == controllers.OCIRepository && ctx.Err() == nil:
		if t, err := f.Stored.Object(ctx, source); err == nil {
			return f.pull(ctx, &unstructured.Unstructured{Object: t.Object}, nil)
		}
	}
	return nil, FetchError(source, err)
}

// fetchFromWorkTree fetches a source that is defined only in the work tree.
func (f *Fetcher) fetchFromWorkTree(ctx context.Context, source controllers.ID) (fs.FS, error) {
	object, err := sourceInWorkTree(ctx, f.Work, source)
	if err != nil {
		return nil, err
	}
	switch source.Kind {
	case "OCIRepository":
		return f.pull(ctx, object, func(settings *http.Transport) http.RoundTripper {
			return egress.NewTransport(settings, f.Hosts)
		})
	case "GitRepository":
		return nil, build.ErrNotFound
	}
	return nil, FetchError(source, errors.New("only source-controller can fetch this source, but it is not on the cluster, or --dry-run is set"))
}

// pull pulls the artifact of an OCIRepository from its registry. A nil restrict
// allows all hosts.
func (f *Fetcher) pull(ctx context.Context, repository *unstructured.Unstructured, restrict func(*http.Transport) http.RoundTripper) (fs.FS, error) {
	got, err := upstream.OCITree(ctx, repository, upstream.RegistryReference(repository), upstream.Credentials{
		Lookup: f.lookup(f.Work), Missing: f.missing("credentials", "docker login"), Login: f.Login.For(f.Provider), Restrict: restrict,
	})
	if err != nil {
		return nil, FetchError(controllers.IDOf(repository.Object), err)
	}
	return got.Tree, nil
}

// FetchError adds the remedy to the error of a source that cannot be fetched.
func FetchError(source controllers.ID, err error) error {
	remedy := fmt.Sprintf("set its directory with --local-sources %s=PATH", hint.Quote(source.String()))
	var hinted *hint.Error
	if errors.As(err, &hinted) {
		remedy = hinted.Hint + "; or " + remedy
	}
	return hint.Errorf(remedy, "fetching its source %s: %w", source, err)
}
