package gitrepo

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// Revision names what of a repository is wanted.
type Revision struct {
	// Name is a branch, a tag, a reference such as refs/pull/1/head, a commit,
	// or what Flux calls a revision: main@sha1:….
	Name string
	// Branch tells that it is a branch and nothing else.
	Branch bool
}

const (
	branches   = "refs/heads/"
	tags       = "refs/tags/"
	hashLength = 40
	// shortest is how much of a hash may stand for it.
	shortest = 7
)

// Hash is the commit that a revision names by its whole hash, "" where it does
// not.
func (r Revision) Hash() string {
	hash := r.Name
	if i := strings.LastIndex(hash, "sha1:"); i == 0 || i > 0 && hash[i-1] == '@' {
		hash = hash[i+len("sha1:"):]
	}
	if r.Branch || len(hash) != hashLength || !isHex(hash) {
		return ""
	}
	return strings.ToLower(hash)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// UnknownRevisionError says that a repository has no such revision, or several.
type UnknownRevisionError struct {
	Revision string
	// Branch tells that a branch was looked for.
	Branch bool
	// Candidates are the references that it may mean, where these are several.
	Candidates []string
	// Short tells that it may be the beginning of a commit's hash.
	Short bool
}

func (e *UnknownRevisionError) Error() string {
	if len(e.Candidates) > 0 {
		return "the repository has several revisions " + quoted(e.Revision) + ": " + strings.Join(e.Candidates, ", ")
	}
	if e.Branch {
		return "the repository has no branch " + quoted(e.Revision)
	}
	return "the repository has no revision " + quoted(e.Revision)
}

func quoted(s string) string { return `"` + s + `"` }

// offer is a revision as a server has it.
type offer struct {
	// name is the branch or tag.
	name string
	hash plumbing.Hash
	// offered tells that the server lists it.
	offered bool
}

// among finds a revision among what a server lists.
func (r Revision) among(adv *packp.AdvRefs) (offer, error) {
	if hash := r.Hash(); hash != "" {
		name, _, named := strings.Cut(r.Name, "@sha1:")
		if !named {
			name = ""
		}
		found := offer{name: name, hash: plumbing.NewHash(hash)}
		found.offered = slices.Contains(tips(adv), found.hash)
		return found, nil
	}
	names := []string{branches + r.Name, tags + r.Name}
	switch {
	case r.Branch:
		names = names[:1]
	case strings.HasPrefix(r.Name, "refs/") || r.Name == "HEAD":
		names = []string{r.Name}
	}
	var found []offer
	var full []string
	for _, name := range names {
		if hash, ok := reference(adv, name); ok {
			short := strings.TrimPrefix(strings.TrimPrefix(name, branches), tags)
			found, full = append(found, offer{short, hash, true}), append(full, name)
		}
	}
	short := !r.Branch && len(r.Name) >= shortest && len(r.Name) < hashLength && isHex(r.Name)
	switch {
	case len(found) == 1 || len(found) > 1 && found[0].hash == found[1].hash:
		return found[0], nil
	case len(found) > 1:
		return offer{}, &UnknownRevisionError{Revision: r.Name, Candidates: full}
	case short:
		return byBeginning(adv, r.Name)
	}
	return offer{}, &UnknownRevisionError{Revision: r.Name, Branch: r.Branch}
}

// byBeginning finds what the server lists by the beginning of its hash.
func byBeginning(adv *packp.AdvRefs, short string) (offer, error) {
	var found []plumbing.Hash
	for _, hash := range tips(adv) {
		if strings.HasPrefix(hash.String(), strings.ToLower(short)) {
			found = append(found, hash)
		}
	}
	if len(found) != 1 {
		return offer{}, &UnknownRevisionError{Revision: short, Short: true}
	}
	return offer{hash: found[0], offered: true}, nil
}

func reference(adv *packp.AdvRefs, name string) (plumbing.Hash, bool) {
	if name == "HEAD" && adv.Head != nil {
		return *adv.Head, true
	}
	hash, ok := adv.References[name]
	return hash, ok
}

// tips are the objects that a server lists, each once.
func tips(adv *packp.AdvRefs) []plumbing.Hash {
	return listed(adv, func(string) bool { return true })
}

// ends are the tips of branches and tags: what a clone would fetch.
func ends(adv *packp.AdvRefs) []plumbing.Hash {
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
