// Package clone finds revisions and directories of clusters in a clone of the repository.
package clone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/snapshot"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/repository"
)

// Branches returns the branches that the base revision may stand for: the
// branch itself, or the default branch for a tag or commit.
func Branches(clone *snapshot.Repository, base string) []string {
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

// Contents returns the files that a clone contains of other references of its repository.
type Contents struct {
	Clone *snapshot.Repository
	known map[build.GitReference]known
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
	reference := build.GitReferenceOf(r.Object)
	found, ok := c.known[reference]
	if !ok {
		found.tree, found.err = treeAt(c.Clone, reference)
		if c.known == nil {
			c.known = map[build.GitReference]known{}
		}
		c.known[reference] = found
	}
	if found.err != nil {
		return repository.Content{}, &repository.UnavailableError{Reason: fmt.Sprintf("%s follows %s: %s", r.Source, reference, found.err), Elsewhere: true}
	}
	return repository.Content{Files: found.tree}, nil
}

// treeAt returns the tree of the clone at the reference of a GitRepository.
func treeAt(clone *snapshot.Repository, reference build.GitReference) (repository.Tree, error) {
	var names []string
	remedy := "fetch it with git fetch --tags origin"
	switch {
	case reference.Branch != "":
		names = []string{"refs/remotes/origin/" + reference.Branch, "refs/heads/" + reference.Branch}
		remedy = "fetch it with " + FetchBranch(reference.Branch)
	case reference.Tag != "":
		names = []string{"refs/tags/" + reference.Tag}
	case reference.SemVer != "":
		tag, err := newest(clone, reference.SemVer)
		if err != nil {
			return nil, err
		}
		names = []string{"refs/tags/" + tag}
	case reference.Name != "":
		names = []string{reference.Name}
		remedy = "its name does not begin with refs/"
		if strings.HasPrefix(reference.Name, "refs/") {
			remedy = "fetch it with git fetch origin " + hint.Quote(reference.Name+":"+reference.Name)
		}
	default:
		names = []string{reference.Commit}
		remedy = "it is not a full commit SHA"
		if plumbing.IsHash(reference.Commit) {
			remedy = "fetch it with git fetch origin " + reference.Commit
		}
	}
	for _, name := range names {
		commit, err := clone.Exactly(name)
		if err != nil {
			continue
		}
		tree, err := clone.At(commit)
		if err != nil {
			return nil, err
		}
		return tree, nil
	}
	return nil, errors.New("not in this clone: " + remedy)
}

// newest returns the tag with the highest version in a range.
func newest(clone *snapshot.Repository, versions string) (string, error) {
	wanted, err := budget.Range(versions)
	if err != nil {
		return "", fmt.Errorf("invalid version range: %w", err)
	}
	_, tags, err := clone.Names()
	if err != nil {
		return "", err
	}
	var best *semver.Version
	for _, tag := range tags {
		// source-controller requires three parts, too.
		version, err := semver.NewVersion(tag)
		if err == nil && strings.Count(tag, ".") >= 2 && wanted.Check(version) && (best == nil || version.GreaterThan(best)) {
			best = version
		}
	}
	if best == nil {
		return "", errors.New("no tag in this clone is in the range: fetch tags with git fetch --tags origin")
	}
	return best.Original(), nil
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
func Submodules(ctx context.Context, clone *snapshot.Repository) func(repository.Tree) (repository.Tree, error) {
	return func(tree repository.Tree) (repository.Tree, error) {
		own, ok := tree.(*snapshot.Tree)
		if !ok {
			return nil, errors.New("their commits are not known")
		}
		added, err := clone.Submodules(ctx, own)
		var missing *snapshot.SubmoduleError
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
