package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/fluxkit/flux/internal/git"
)

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
	// minHashLength is the minimum length of an abbreviated hash.
	minHashLength = 7
)

// UnknownError is returned if a revision does not exist on the server or is ambiguous.
type UnknownError struct {
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

func (e *UnknownError) Error() string {
	switch {
	case len(e.Candidates) > 0:
		return fmt.Sprintf(`revision "%s" is ambiguous: %s`, e.Revision, strings.Join(e.Candidates, ", "))
	case e.Branch:
		return fmt.Sprintf(`branch "%s" not found in the repository`, e.Revision)
	}
	return fmt.Sprintf(`revision "%s" not found in the repository`, e.Revision)
}

// Resolve returns the branch or tag and the commit of a revision on the server, without fetching it.
func (r Repository) Resolve(ctx context.Context, revision git.Revision) (git.Revision, error) {
	var found resolved
	err := r.fetch(ctx, nil, func(adv *packp.AdvRefs) (_ plumbing.Hash, err error) {
		found, err = resolve(revision, adv)
		if peeled, annotated := adv.Peeled[tags+found.name]; annotated && adv.References[tags+found.name] == found.hash {
			found.hash = peeled
		}
		return plumbing.ZeroHash, err
	})
	if err != nil && !errors.As(err, new(*UnknownError)) {
		err = r.explain(ctx, "reading the references of", err)
	}
	return git.Revision{Name: found.name, Commit: found.hash.String()}, err
}

// resolved is a revision on a server.
type resolved struct {
	// name is the branch or tag.
	name string
	hash plumbing.Hash
	// advertised is set if the server lists the commit as a reference.
	advertised bool
}

// resolve finds a revision in the references of a server.
func resolve(r git.Revision, adv *packp.AdvRefs) (resolved, error) {
	text := r.String()
	names := []string{branches + text, tags + text}
	switch {
	case r.SemVer != "":
		return newest(r.SemVer, adv)
	case plumbing.IsHash(r.Commit):
		hash := plumbing.NewHash(r.Commit)
		return resolved{r.Name, hash, slices.Contains(hashes(adv, ""), hash)}, nil
	case r.Branch != "":
		names = names[:1]
	case r.Tag != "":
		names = names[1:]
	case strings.HasPrefix(text, "refs/") || text == "HEAD":
		names = []string{text}
	}
	var found []resolved
	var full []string
	for _, name := range names {
		if hash, ok := reference(adv, name); ok {
			short := strings.TrimPrefix(strings.TrimPrefix(name, branches), tags)
			found, full = append(found, resolved{short, hash, true}), append(full, name)
		}
	}
	switch {
	case len(found) == 1 || len(found) > 1 && found[0].hash == found[1].hash:
		return found[0], nil
	case len(found) > 1:
		return resolved{}, &UnknownError{Revision: text, Candidates: full}
	case r.Branch == "" && r.Tag == "" && len(text) >= minHashLength && git.IsHex(text):
		return abbreviated(text, adv)
	}
	unknown := &UnknownError{Revision: text, Branch: r.Branch != ""}
	_, unknown.Tag = reference(adv, tags+text)
	unknown.Branches = listed(adv, branches)
	return resolved{}, unknown
}

// newest resolves a range of versions.
func newest(versions string, adv *packp.AdvRefs) (resolved, error) {
	tag, err := git.NewestTag(listed(adv, tags), versions)
	if err == nil && tag == "" {
		err = &UnknownError{Revision: versions}
	}
	return resolved{tag, adv.References[tags+tag], true}, err
}

// abbreviated resolves an abbreviated hash with the references of the server.
func abbreviated(short string, adv *packp.AdvRefs) (resolved, error) {
	found := slices.DeleteFunc(hashes(adv, ""), func(hash plumbing.Hash) bool {
		return !strings.HasPrefix(hash.String(), strings.ToLower(short))
	})
	if len(found) != 1 {
		return resolved{}, &UnknownError{Revision: short, Short: true}
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

// listed returns the sorted references below a prefix, without the prefix.
func listed(adv *packp.AdvRefs, prefix string) (names []string) {
	for name := range adv.References {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			names = append(names, short)
		}
	}
	slices.Sort(names)
	return names
}

// hashes returns the object hashes of the references below prefixes, without duplicates.
func hashes(adv *packp.AdvRefs, prefixes ...string) (all []plumbing.Hash) {
	for _, prefix := range prefixes {
		for _, name := range listed(adv, prefix) {
			all = append(all, adv.References[prefix+name])
		}
	}
	plumbing.HashesSort(all)
	return slices.Compact(all)
}
