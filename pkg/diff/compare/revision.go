package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// revised plans the build of another revision of the source. Children with the
// same source use the same revision.
func (p *Plan) revised(ctx context.Context, ks *unstructured.Unstructured) error {
	c := p.comparer
	options, err := c.buildOptions(p.settings)
	if err != nil {
		return err
	}
	source := build.SourceOf(ks)
	at, err := c.sourceAt(ctx, p.stored, source)
	if err != nil {
		return err
	}
	p.Plan, p.revision = desired.Operated(c.Builder, desired.Plan{Ks: ks, Tree: at.Tree, Options: options}), at.Revision
	if c.Recursive {
		p.Sources = func(ctx context.Context, other controllers.ID) (fs.FS, error) {
			if other == source {
				return at.Tree, nil
			}
			return p.stored.Tree(ctx, other)
		}
	}
	return nil
}

// sourceAt fetches the selected revision of a source.
func (c *Comparer) sourceAt(ctx context.Context, stored *upstream.StoredSources, source controllers.ID) (upstream.StoredSource, error) {
	t, err := stored.Object(ctx, source)
	if err != nil {
		return upstream.StoredSource{}, err
	}
	c.Announce("fetching %s of %s", cmp.Or(c.Branch, c.Revision), source)
	switch source.Kind {
	case controllers.GitRepository:
		return c.gitAt(ctx, stored, &unstructured.Unstructured{Object: t.Object})
	case controllers.OCIRepository:
		if c.Branch != "" {
			return upstream.StoredSource{}, hint.Errorf("set a tag or digest with --revision", "%s has no branches", source)
		}
		repository := &unstructured.Unstructured{Object: t.Object}
		return upstream.OCITree(ctx, repository, upstream.AtRevision(upstream.RegistryReference(repository), c.Revision), upstream.Credentials{
			Lookup: build.LookupFunc(c.Data), Login: c.Login.For(c.Provider),
		})
	default:
		return upstream.StoredSource{}, hint.Errorf("compare a local directory with --path", "cannot select a revision of %s: only GitRepository and OCIRepository support it", source)
	}
}

// gitAt returns a revision of a GitRepository with the files that
// source-controller would archive.
func (c *Comparer) gitAt(ctx context.Context, stored *upstream.StoredSources, repository *unstructured.Unstructured) (upstream.StoredSource, error) {
	fetched, err := c.gitFiles(ctx, repository)
	if err != nil {
		return upstream.StoredSource{}, err
	}
	defer func() { _ = fetched.Close() }() // the temporary directory is removed a day later if this fails
	only := sourcetree.SparseCheckout(repository)
	for _, dir := range only {
		if !fetched.Tree.Has(path.Clean(dir)) {
			return upstream.StoredSource{}, fmt.Errorf("directory %q of spec.sparseCheckout not found in %s", dir, fetched.Revision)
		}
	}
	included, err := sourcetree.Included(repository, func(other controllers.ID) (fs.FS, error) {
		tree, err := stored.Tree(ctx, other)
		if err != nil {
			return nil, fmt.Errorf("reading %s of spec.include: %w", other, err)
		}
		return tree, nil
	})
	if err != nil {
		return upstream.StoredSource{}, err
	}
	tree, err := sourcetree.Assemble(ctx, append([]sourcetree.Part{{Tree: fetched.Tree, Only: only}}, included...), sourcetree.IgnoreOf(repository))
	return upstream.StoredSource{Tree: tree, Revision: fetched.Revision}, err
}

// gitFiles returns the files of a revision from the Git server, or from the clone in the
// current directory if it has the exact commit or the revision does not exist on the
// server.
func (c *Comparer) gitFiles(ctx context.Context, repository *unstructured.Unstructured) (*remote.Fetched, error) {
	wanted, local := git.ParseRevision(c.Revision), git.ParseRevision(c.Revision)
	if c.Branch != "" {
		wanted, local = git.Revision{Branch: c.Branch}, git.Revision{Name: "refs/heads/" + c.Branch}
	}
	clone, closed := cloneOf(desired.Text(repository, "spec", "url"))
	defer closed()
	submodules, _, _ := unstructured.NestedBool(repository.Object, "spec", "recurseSubmodules")
	if only := sourcetree.SparseCheckout(repository); only != nil && !slices.ContainsFunc(only, func(p string) bool { return strings.HasPrefix(".gitmodules", p) }) {
		submodules = false // .gitmodules is not checked out
	}
	if submodules {
		clone = nil // the clone does not have the files of submodules
	}
	if clone != nil && wanted.Commit != "" {
		if found, err := filesIn(clone, wanted, wanted.Name); err == nil {
			return found, nil
		}
	}
	source, err := upstream.GitAccess{Provider: c.Provider, Data: c.Data, Login: c.GitLogin, Remedy: gitRemedy}.Source(ctx, repository)
	if err != nil {
		return nil, err
	}
	source.Submodules = submodules
	fetched, err := source.Fetch(ctx, wanted)
	var unknown *remote.UnknownError
	switch {
	case err == nil:
		return fetched, nil
	case !errors.As(err, &unknown):
		return nil, explainGit(err, repository)
	case clone != nil && len(unknown.Candidates) == 0:
		if found, err := filesIn(clone, local, cmp.Or(wanted.Branch, wanted.Name)); err == nil {
			c.Warn("%s has no revision %q on its server: using %s from the clone in the current directory", controllers.IDOf(repository.Object), cmp.Or(c.Branch, c.Revision), found.Revision)
			return found, nil
		}
	}
	return nil, unknownAt(unknown, repository)
}

// unknownAt adds a remedy to an unknown or ambiguous revision.
func unknownAt(err *remote.UnknownError, repository *unstructured.Unstructured) error {
	remedy := "use a branch, a tag, a reference such as refs/pull/1/head, or a full commit SHA"
	switch {
	case len(err.Candidates) > 0:
		remedy = "use one of them: --revision " + err.Candidates[0]
	case err.Branch:
		remedy = branchRemedy(err)
	case err.Short:
		remedy = "a commit that is not the head of a branch or tag requires the full SHA"
	}
	return hint.Errorf(remedy, "looking in %s: %w", controllers.IDOf(repository.Object), err)
}

// branchRemedy suggests the branch or the flag that was probably meant.
func branchRemedy(err *remote.UnknownError) string {
	const listed = 5
	near := hint.Nearest{Word: err.Revision}
	for _, branch := range err.Branches {
		near.Try(branch, []string{branch})
	}
	switch {
	case err.Tag:
		return fmt.Sprintf("%q is a tag: set it with --revision", err.Revision)
	case len(err.Branches) == 0:
		return "the repository has no branches"
	case near.Best() != "":
		return fmt.Sprintf("did you mean --branch %s?", near.Best())
	case len(err.Branches) > listed:
		return fmt.Sprintf("use one of its %d branches, such as %s", len(err.Branches), strings.Join(err.Branches[:listed], ", "))
	}
	return "use one of its branches: " + strings.Join(err.Branches, ", ")
}

// explainGit adds the object that the URL and credentials come from, except to server and
// network errors.
func explainGit(err error, repository *unstructured.Unstructured) error {
	var known *remote.Error
	if errors.As(err, &known) && known.Transient {
		return hint.Errorf(known.Hint, "%w", err)
	}
	secret := desired.Text(repository, "spec", "secretRef", "name")
	remedy := "source-controller uses the same URL, without a Secret"
	if secret != "" {
		remedy = fmt.Sprintf("source-controller uses the same URL and Secret %q; in a clone, compare a directory with --path", secret)
	}
	return hint.Errorf(remedy, "%w", err)
}

// gitRemedy is the remedy if there are no credentials for a GitRepository.
const gitRemedy = "compare a clone with --path, or run the command in a clone with a full commit SHA"

// cloneOf returns the clone in the current directory if one of its remotes is
// address. The caller must close it.
func cloneOf(address string) (clone *git.Clone, closed func()) {
	opened, err := git.Open(".")
	if err != nil {
		return nil, func() {}
	}
	closed = func() { _ = opened.Close() } // read-only
	if !opened.Of(address) {
		return nil, closed
	}
	return opened, closed
}

// filesIn returns the files of a revision of a clone, with the name of its branch or tag.
func filesIn(clone *git.Clone, revision git.Revision, name string) (*remote.Fetched, error) {
	commit, err := clone.Commit(revision)
	if err != nil {
		return nil, err
	}
	tree, err := clone.At(commit)
	return &remote.Fetched{Revision: git.Revision{Name: name, Commit: commit.String()}.Flux(), Tree: tree}, err
}
