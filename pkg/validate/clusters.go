package validate

import (
	"context"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/clone"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// Clusters holds the cluster directories in a revision of a repository.
type Clusters struct {
	Revision repository.Revision
	Paths    []string
}

// Find returns the clusters in a revision of a clone, or in its work tree if the revision is "". Without paths,
// they are found by the Kustomizations that apply their own directory.
func (o *Options) Find(ctx context.Context, checkout *git.Clone, revision string, paths []string) (c Clusters, err error) {
	if c.Revision, err = at(ctx, checkout, revision); err != nil {
		return c, err
	}
	o.Branches = clone.Branches(checkout, revision)
	c.Paths, err = directories(ctx, checkout, paths, c.Revision)
	return c, err
}

// at returns the revision to validate.
func at(ctx context.Context, checkout *git.Clone, name string) (repository.Revision, error) {
	if name == "" && checkout.Root() != "" {
		tree, err := checkout.WorkTree(ctx)
		return repository.Revision{Tree: tree, Name: "the work tree"}, err
	}
	if name == "" {
		name = "HEAD"
	}
	commit, err := checkout.Resolve(ctx, name)
	if err != nil {
		return repository.Revision{}, err
	}
	tree, err := checkout.At(commit)
	return repository.Revision{Tree: tree, Name: name}, err
}

// directories returns the directories of the clusters.
func directories(ctx context.Context, checkout *git.Clone, paths []string, at repository.Revision) ([]string, error) {
	if len(paths) > 0 {
		found, _, err := clone.Paths(ctx, checkout, paths, at, at)
		return found, err
	}
	found, others, err := layout.Roots(ctx, at.Tree)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, layout.NotFound(others)
}
