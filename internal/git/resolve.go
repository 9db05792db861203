package git

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fluxkit/flux/internal/hint"
)

const (
	// originBranches is the prefix of references to branches of origin.
	originBranches = "refs/remotes/origin/"
	// minAbbreviation is the minimum length of an abbreviated commit ID, as in Git.
	minAbbreviation = 4
)

// UnknownError is returned for a revision that the clone does not contain.
type UnknownError struct {
	Revision string
	// Shallow reports whether the clone contains only a part of the history.
	Shallow bool
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("revision %q not found in this clone", e.Revision)
}

// Resolve resolves a revision in any syntax that git supports. It runs git for syntax that go-git does not support,
// such as dates.
func (c *Clone) Resolve(ctx context.Context, revision string) (plumbing.Hash, error) {
	found, err := c.Commit(ParseRevision(revision))
	if !errors.As(err, new(*UnknownError)) {
		return found, err
	}
	unknown := hint.Errorf("use a branch, tag or commit that exists in the clone, or fetch the revision with git", "%w", err)
	if plumbing.IsHash(revision) {
		return found, unknown
	}
	id, err := c.program().run(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	switch {
	case err == nil:
		return plumbing.NewHash(id), nil
	case ctx.Err() != nil:
		return found, err
	case errors.Is(err, ErrNoGit) && strings.ContainsAny(revision, "{:"):
		return found, fmt.Errorf("reading revision %q: %w", revision, ErrNoGit)
	}
	return found, unknown
}

// Commit resolves a revision without git. The branch of a GitRepository is resolved at origin, from which Flux
// fetches.
func (c *Clone) Commit(revision Revision) (plumbing.Hash, error) {
	if revision.SemVer != "" {
		_, tags, err := c.Names()
		if err == nil {
			revision.Tag, err = NewestTag(tags, revision.SemVer)
		}
		if err != nil {
			return plumbing.ZeroHash, err
		}
	}
	c.objects.mu.Lock()
	defer c.objects.mu.Unlock()
	n := names{c.git, c.objects}
	var found plumbing.Hash
	var ok bool
	switch {
	case revision.Commit != "":
		found, ok = n.peel(plumbing.NewHash(revision.Commit))
		ok = ok && plumbing.IsHash(revision.Commit)
	case revision.Branch != "":
		found, ok = n.reference(revision.Branch, originBranches+"%s", "refs/heads/%s")
	case revision.Tag != "":
		found, ok = n.reference(revision.Tag, "refs/tags/%s")
	default:
		found, ok = n.named(revision.Name)
	}
	if !ok {
		return found, &UnknownError{revision.String(), c.objects.store.shallow()}
	}
	return found, nil
}

// names resolves names of commits in a clone.
type names struct {
	git     *gogit.Repository
	objects *Objects
}

// named resolves a name and the suffixes for parents. As in Git, a full commit ID takes precedence over a reference with
// that name, and a reference over an abbreviated commit ID: a branch called 2024 is never a commit whose ID begins with
// 2024. A branch without a local copy is resolved at origin, as in the clones of CI systems.
func (n names) named(name string) (found plumbing.Hash, ok bool) {
	if strings.ContainsAny(name, "{:") {
		return plumbing.ZeroHash, false // go-git ignores unknown parts of this syntax
	}
	suffix := ""
	if at := strings.IndexAny(name, "^~"); at >= 0 {
		name, suffix = name[:at], name[at:]
	}
	switch {
	case name == "@":
		name = "HEAD"
	case plumbing.IsHash(name):
		found, ok = n.peel(plumbing.NewHash(name))
	}
	if !ok {
		found, ok = n.reference(name, append(slices.Clone(plumbing.RefRevParseRules), originBranches+"%s")...)
	}
	if !ok {
		found, ok = n.abbreviated(name)
	}
	if !ok || suffix == "" {
		return found, ok
	}
	ancestor, err := n.git.ResolveRevision(plumbing.Revision(found.String() + suffix))
	if err != nil {
		return plumbing.ZeroHash, false
	}
	return *ancestor, true
}

// reference returns the commit of the first reference that exists.
func (n names) reference(name string, rules ...string) (plumbing.Hash, bool) {
	for _, rule := range rules {
		found, err := n.git.Reference(plumbing.ReferenceName(fmt.Sprintf(rule, name)), true)
		if err != nil {
			continue
		}
		if commit, ok := n.peel(found.Hash()); ok {
			return commit, true
		}
	}
	return plumbing.ZeroHash, false
}

// abbreviated returns the commit whose ID begins with a prefix, if the prefix is long enough and unambiguous.
func (n names) abbreviated(prefix string) (found plumbing.Hash, ok bool) {
	if len(prefix) < minAbbreviation || !IsHex(prefix) {
		return found, false
	}
	bytes, err := hex.DecodeString(prefix[:len(prefix)&^1])
	if err != nil {
		return found, false
	}
	candidates, err := n.objects.store.files.HashesWithPrefix(bytes)
	for _, hash := range candidates {
		commit, isCommit := n.peel(hash)
		if !isCommit || commit != hash || !strings.HasPrefix(hash.String(), strings.ToLower(prefix)) || hash == found {
			continue
		}
		if ok {
			return plumbing.ZeroHash, false
		}
		found, ok = hash, true
	}
	return found, ok && err == nil
}

func (n names) peel(hash plumbing.Hash) (plumbing.Hash, bool) {
	commit, err := n.objects.commit(hash)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	return commit.Hash, true
}
