package validate

import (
	"context"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/clone"
)

// Clusters holds the cluster directories in a revision of a repository.
type Clusters struct {
	clone.Selection
	Revision repository.Revision
}

// Find returns the clusters in a revision of a clone, or in its work tree if the revision is "". Without paths,
// they are found by the Kustomizations that apply their own directory.
func (o *Options) Find(ctx context.Context, checkout *git.Clone, revision string, paths []string) (c Clusters, err error) {
	if c.Revision, err = at(ctx, checkout, revision); err != nil {
		return c, err
	}
	o.Branches = clone.Branches(checkout, revision)
	c.Selection, err = clone.Paths(ctx, checkout, paths, c.Revision, c.Revision)
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
