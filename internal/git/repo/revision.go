package repo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/fluxkit/flux/internal/budget"
)

// Revision is a revision of a Git repository.
type Revision struct {
	// Name is a branch, a tag, a reference such as refs/pull/1/head, a commit,
	// or a revision of Flux such as main@sha1:….
	Name string
	// Branch is set if Name can only be a branch, and Tag if it can only be a tag.
	Branch, Tag bool
	// SemVer is a range, of which the tag of the highest version is meant. Name is ignored then.
	SemVer string
}

const (
	branches   = "refs/heads/"
	tags       = "refs/tags/"
	hashLength = 40
	// minHashLength is the minimum length of an abbreviated hash.
	minHashLength = 7
)

// Hash returns the commit of a revision with a full hash, or "" for other revisions.
func (r Revision) Hash() string {
	if r.Branch || r.Tag || r.SemVer != "" {
		return ""
	}
	hash := r.Name
	if i := strings.LastIndex(hash, "sha1:"); i == 0 || i > 0 && hash[i-1] == '@' {
		hash = hash[i+len("sha1:"):]
	}
	if len(hash) != hashLength || !isHex(hash) {
		return ""
	}
	return strings.ToLower(hash)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// UnknownRevisionError is returned if a revision does not exist or is ambiguous.
type UnknownRevisionError struct {
	Revision string
	// Branch is set if only branches were searched. Branches lists the branches of the repository,
	// and Tag is set if a tag with the name exists.
	Branch   bool
	Branches []string
	Tag      bool
	// Candidates lists the matching references of an ambiguous revision.
	Candidates []string
	// Short is set if the revision may be an abbreviated hash.
	Short bool
}

func (e *UnknownRevisionError) Error() string {
	if len(e.Candidates) > 0 {
		return "revision " + quoted(e.Revision) + " is ambiguous: " + strings.Join(e.Candidates, ", ")
	}
	if e.Branch {
		return "branch " + quoted(e.Revision) + " not found in the repository"
	}
	return "revision " + quoted(e.Revision) + " not found in the repository"
}

func quoted(s string) string { return `"` + s + `"` }

// resolved is a revision on a server.
type resolved struct {
	// name is the branch or tag.
	name string
	hash plumbing.Hash
	// advertised is set if the server lists the commit as a reference.
	advertised bool
}

// resolve finds a revision in the references of a server.
func (r Revision) resolve(adv *packp.AdvRefs) (resolved, error) {
	if r.SemVer != "" {
		return r.newest(adv)
	}
	if hash := r.Hash(); hash != "" {
		name, _, named := strings.Cut(r.Name, "@sha1:")
		if !named {
			name = ""
		}
		found := resolved{name: name, hash: plumbing.NewHash(hash)}
		found.advertised = slices.Contains(tips(adv), found.hash)
		return found, nil
	}
	names := []string{branches + r.Name, tags + r.Name}
	switch {
	case r.Branch:
		names = names[:1]
	case r.Tag:
		names = names[1:]
	case strings.HasPrefix(r.Name, "refs/") || r.Name == "HEAD":
		names = []string{r.Name}
	}
	var found []resolved
	var full []string
	for _, name := range names {
		if hash, ok := reference(adv, name); ok {
			short := strings.TrimPrefix(strings.TrimPrefix(name, branches), tags)
			found, full = append(found, resolved{short, hash, true}), append(full, name)
		}
	}
	short := !r.Branch && !r.Tag && len(r.Name) >= minHashLength && len(r.Name) < hashLength && isHex(r.Name)
	switch {
	case len(found) == 1 || len(found) > 1 && found[0].hash == found[1].hash:
		return found[0], nil
	case len(found) > 1:
		return resolved{}, &UnknownRevisionError{Revision: r.Name, Candidates: full}
	case short:
		return resolveShort(adv, r.Name)
	}
	unknown := &UnknownRevisionError{Revision: r.Name, Branch: r.Branch}
	_, unknown.Tag = reference(adv, tags+r.Name)
	for name := range adv.References {
		if branch, ok := strings.CutPrefix(name, branches); ok {
			unknown.Branches = append(unknown.Branches, branch)
		}
	}
	slices.Sort(unknown.Branches)
	return resolved{}, unknown
}

// newest returns the tag of the highest version in the range. source-controller requires three parts
// of a version, too.
func (r Revision) newest(adv *packp.AdvRefs) (resolved, error) {
	wanted, err := budget.Range(r.SemVer)
	if err != nil {
		return resolved{}, fmt.Errorf("%.80q is no range of versions: %w", r.SemVer, err)
	}
	var best *semver.Version
	for _, name := range slices.Sorted(maps.Keys(adv.References)) {
		tag, isTag := strings.CutPrefix(name, tags)
		version, err := semver.NewVersion(tag)
		if isTag && err == nil && strings.Count(tag, ".") >= 2 && wanted.Check(version) && (best == nil || version.GreaterThan(best)) {
			best = version
		}
	}
	if best == nil {
		return resolved{}, &UnknownRevisionError{Revision: r.SemVer}
	}
	return resolved{best.Original(), adv.References[tags+best.Original()], true}, nil
}

// ResolveRevision returns the branch or tag and the commit of a revision on the server, without
// fetching it.
func ResolveRevision(ctx context.Context, remote Remote, revision Revision) (name string, commit plumbing.Hash, err error) {
	err = exchange(ctx, remote, Remote.openUpload, func(_ context.Context, _ uploader, adv *packp.AdvRefs) error {
		found, err := revision.resolve(adv)
		if name, commit = found.name, found.hash; err != nil {
			return err
		}
		if peeled, annotated := adv.Peeled[tags+found.name]; annotated && adv.References[tags+found.name] == commit {
			commit = peeled
		}
		return nil
	})
	var unknown *UnknownRevisionError
	if err != nil && !errors.As(err, &unknown) {
		err = remote.explain(ctx, "reading the references of", err)
	}
	return name, commit, err
}

// resolveShort resolves an abbreviated hash with the references of the server.
func resolveShort(adv *packp.AdvRefs, short string) (resolved, error) {
	var found []plumbing.Hash
	for _, hash := range tips(adv) {
		if strings.HasPrefix(hash.String(), strings.ToLower(short)) {
			found = append(found, hash)
		}
	}
	if len(found) != 1 {
		return resolved{}, &UnknownRevisionError{Revision: short, Short: true}
	}
	return resolved{hash: found[0], advertised: true}, nil
}

func reference(adv *packp.AdvRefs, name string) (plumbing.Hash, bool) {
	if name == "HEAD" && adv.Head != nil {
		return *adv.Head, true
	}
	hash, ok := adv.References[name]
	return hash, ok
}

// tips returns the objects of all references, without duplicates.
func tips(adv *packp.AdvRefs) []plumbing.Hash {
	return listed(adv, func(string) bool { return true })
}

// branchesAndTags returns the objects of branches and tags, as fetched by a clone.
func branchesAndTags(adv *packp.AdvRefs) []plumbing.Hash {
	return listed(adv, func(name string) bool { return strings.HasPrefix(name, branches) || strings.HasPrefix(name, tags) })
}

func listed(adv *packp.AdvRefs, wanted func(name string) bool) []plumbing.Hash {
	var all []plumbing.Hash
	for name, hash := range adv.References {
		if wanted(name) {
			all = append(all, hash)
		}
	}
	slices.SortFunc(all, func(a, b plumbing.Hash) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}
