package snapshot

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// minAbbreviation is the minimum length of an abbreviated commit ID, as in Git.
const minAbbreviation = 4

// names resolves names of commits in a clone.
type names struct {
	git     *git.Repository
	objects *storage
}

// resolve resolves a revision without syntax that go-git does not support. As in Git, a full commit ID
// takes precedence over a reference with that name, and a reference over an abbreviated commit ID: a
// branch called 2024 is never a commit whose ID begins with 2024. A branch without a local copy is
// resolved at origin, as in the clones of CI systems.
func (n names) resolve(revision string) (plumbing.Hash, bool) {
	if strings.ContainsAny(revision, "{:") {
		return plumbing.ZeroHash, false // go-git ignores unknown parts of this syntax
	}
	base, suffix := revision, ""
	if at := strings.IndexAny(revision, "^~@"); at > 0 {
		base, suffix = revision[:at], revision[at:]
	}
	if full, ok := n.reference(base); ok && !plumbing.IsHash(base) {
		revision = full + suffix
	} else if isHex(base) && !plumbing.IsHash(base) && !n.unique(base) {
		return plumbing.ZeroHash, false
	}
	found, err := n.git.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return plumbing.ZeroHash, false
	}
	return *found, true
}

// reference returns the full name of the reference that Git selects for a name.
func (n names) reference(name string) (full string, ok bool) {
	for _, rule := range slices.Concat(plumbing.RefRevParseRules, []string{"refs/remotes/origin/%s"}) {
		full := fmt.Sprintf(rule, name)
		if _, err := n.git.Reference(plumbing.ReferenceName(full), true); err == nil {
			return full, true
		}
	}
	return "", false
}

// unique reports whether an abbreviated commit ID is long enough and means one commit.
func (n names) unique(prefix string) bool {
	if len(prefix) < minAbbreviation {
		return false
	}
	bytes, err := hex.DecodeString(prefix[:len(prefix)&^1])
	if err != nil {
		return false
	}
	candidates, err := n.objects.HashesWithPrefix(bytes)
	commits := map[plumbing.Hash]bool{}
	for _, hash := range candidates {
		if _, err := n.git.CommitObject(hash); err == nil && strings.HasPrefix(hash.String(), strings.ToLower(prefix)) {
			commits[hash] = true
		}
	}
	return err == nil && len(commits) == 1
}

func isHex(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdefABCDEF") == ""
}
