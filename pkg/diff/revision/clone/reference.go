// Package clone finds the revisions and folders that diff --base compares in a clone of the
// repository.
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
	"github.com/fluxkit/flux/pkg/diff/revision"
)

// Branches returns the branches that the base revision may stand for: the
// branch itself, or the default branch for a tag or commit.
func Branches(repository *snapshot.Repository, base string) []string {
	known, _, err := repository.Names()
	name := strings.TrimPrefix(base, "refs/heads/")
	for _, candidate := range []string{name, afterRemote(name), afterRemote(strings.TrimPrefix(base, "refs/remotes/"))} {
		if err == nil && slices.Contains(known, candidate) {
			return []string{candidate}
		}
	}
	if branch := repository.DefaultBranch(); branch != "" {
		return []string{branch}
	}
	return []string{"main", "master"}
}

func afterRemote(name string) string {
	_, branch, _ := strings.Cut(name, "/")
	return branch
}

// TreeAt returns the tree of the clone at the reference of a GitRepository.
func TreeAt(repository *snapshot.Repository, reference build.GitReference) (revision.Tree, error) {
	var names []string
	remedy := "fetch it with git fetch --tags origin"
	switch {
	case reference.Branch != "":
		names = []string{"refs/remotes/origin/" + reference.Branch, "refs/heads/" + reference.Branch}
		remedy = "fetch it with " + FetchBranch(reference.Branch)
	case reference.Tag != "":
		names = []string{"refs/tags/" + reference.Tag}
	case reference.SemVer != "":
		tag, err := newest(repository, reference.SemVer)
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
		commit, err := repository.Exactly(name)
		if err != nil {
			continue
		}
		tree, err := repository.At(commit)
		if err != nil {
			return nil, err
		}
		return tree, nil
	}
	return nil, errors.New("not in this clone: " + remedy)
}

// newest returns the tag with the highest version in a range.
func newest(repository *snapshot.Repository, versions string) (string, error) {
	wanted, err := budget.Range(versions)
	if err != nil {
		return "", fmt.Errorf("invalid version range: %w", err)
	}
	_, tags, err := repository.Names()
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
func Submodules(ctx context.Context, repository *snapshot.Repository) func(revision.Tree) (revision.Tree, error) {
	return func(tree revision.Tree) (revision.Tree, error) {
		own, ok := tree.(*snapshot.Tree)
		if !ok {
			return nil, errors.New("their commits are not known")
		}
		added, err := repository.Submodules(ctx, own)
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
