// Package clone finds revisions and cluster directories in a clone of the repository.
package clone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// Branches returns the branches that the base revision may refer to: the branch
// itself, or the default branch for a tag or commit.
func Branches(clone *git.Clone, base string) []string {
	known, _, err := clone.Names()
	name := strings.TrimPrefix(base, "refs/heads/")
	for _, candidate := range []string{name, afterRemote(name), afterRemote(strings.TrimPrefix(base, "refs/remotes/"))} {
		if err == nil && slices.Contains(known, candidate) {
			return []string{candidate}
		}
	}
	if branch := clone.DefaultBranch(); branch != "" {
		return []string{branch}
	}
	return []string{"main", "master"}
}

func afterRemote(name string) string {
	_, branch, _ := strings.Cut(name, "/")
	return branch
}

// Contents returns the files of a repository at other references, from a clone. It
// is safe for concurrent use.
type Contents struct {
	Clone *git.Clone

	mu    sync.Mutex
	known map[controllers.GitReference]known
}

type known struct {
	tree repository.Tree
	err  error
}

// Content implements repository.Contents.
func (c *Contents) Content(_ context.Context, r repository.Request) (repository.Content, error) {
	if !r.Local {
		return repository.Content{}, build.ErrNotFound
	}
	reference := controllers.GitReferenceOf(r.Object.Object)
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[reference]
	if !ok {
		found.tree, found.err = treeAt(c.Clone, reference)
		if c.known == nil {
			c.known = map[controllers.GitReference]known{}
		}
		c.known[reference] = found
	}
	if found.err != nil {
		return repository.Content{}, &repository.UnavailableError{Reason: fmt.Sprintf("%s follows %s: %s", r.Source, reference, found.err), Elsewhere: true}
	}
	return repository.Content{Files: found.tree}, nil
}

// Submodules adds the files of submodules to a tree of the clone.
func (c *Contents) Submodules(ctx context.Context, tree repository.Tree) (repository.Tree, error) {
	return Submodules(ctx, c.Clone)(tree)
}

// treeAt returns the tree of the clone at the reference of a GitRepository.
func treeAt(clone *git.Clone, reference controllers.GitReference) (repository.Tree, error) {
	commit, err := clone.Commit(git.Revision(reference))
	if errors.As(err, new(*git.UnknownError)) {
		return nil, errors.New(missing(reference))
	}
	if err != nil {
		return nil, err
	}
	return clone.At(commit)
}

// missing describes a reference that the clone does not contain, with the remedy.
func missing(reference controllers.GitReference) string {
	remedy := "it is not a full commit SHA"
	switch {
	case reference.SemVer != "":
		return "no tag in this clone matches the range: fetch tags with git fetch --tags origin"
	case reference.Branch != "":
		remedy = "fetch it with " + FetchBranch(reference.Branch)
	case reference.Tag != "":
		remedy = "fetch it with git fetch --tags origin"
	case strings.HasPrefix(reference.Name, "refs/"):
		remedy = "fetch it with git fetch origin " + hint.Quote(reference.Name+":"+reference.Name)
	case reference.Name != "":
		remedy = "its name does not begin with refs/"
	case plumbing.IsHash(reference.Commit):
		remedy = "fetch it with git fetch origin " + reference.Commit
	}
	return "not in this clone: " + remedy
}

// FetchBranch returns the command that fetches a branch, whose name is untrusted.
func FetchBranch(name string) string {
	from := name
	if strings.HasPrefix(name, "-") {
		from = "refs/heads/" + name // not an option
	}
	return "git fetch origin " + hint.Quote(from+":refs/remotes/origin/"+name)
}

// Submodules returns a function that adds the files of submodules to a tree of the
// clone.
func Submodules(ctx context.Context, clone *git.Clone) func(repository.Tree) (repository.Tree, error) {
	return func(tree repository.Tree) (repository.Tree, error) {
		own, ok := tree.(*filetree.Tree)
		if !ok {
			return nil, errors.New("their commits are unknown")
		}
		added, err := clone.Submodules(ctx, own)
		var missing *git.SubmoduleError
		if errors.As(err, &missing) {
			command := "submodule update --init --recursive -- " + hint.Quote(missing.Top)
			if missing.Commit != "" {
				command = "-C " + hint.Quote(missing.Path) + " fetch origin " + missing.Commit
			}
			return nil, fmt.Errorf("%w: fetch it with git %s", err, command)
		}
		if err != nil {
			return nil, err // a typed nil is not nil
		}
		return added, nil
	}
}
