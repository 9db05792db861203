package remote

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/fluxkit/flux/internal/git"
)

// TestResolve resolves names that are references of a server, the beginnings of commit IDs, or both: a reference takes
// precedence over an abbreviated commit ID.
func TestResolve(t *testing.T) {
	t.Parallel()
	one, two, three := strings.Repeat("2024", 10), strings.Repeat("b0", 20), strings.Repeat("c", 40)
	adv := &packp.AdvRefs{References: map[string]plumbing.Hash{
		"refs/heads/main":     plumbing.NewHash(one),
		"refs/heads/2024202":  plumbing.NewHash(two),
		"refs/tags/b0b0b0b0":  plumbing.NewHash(three),
		"refs/heads/both":     plumbing.NewHash(one),
		"refs/tags/both":      plumbing.NewHash(two),
		"refs/pull/1/head":    plumbing.NewHash(three),
		"refs/heads/c0ffee00": plumbing.NewHash(one),
	}}
	for name, want := range map[string]string{
		"main": one, "refs/heads/main": one, "refs/pull/1/head": three,
		"2024202": two, "20242024": one, "b0b0b0b0": three, "b0b0b0b": two, "C0ffee00": "", "c0ffee00": one, "ccccccc": three,
		"main@sha1:" + two: two, two: two,
		"2024": "", "both": "", "gone": "",
	} {
		got, err := resolve(git.ParseRevision(name), adv)
		if want == "" && err == nil || want != "" && (err != nil || got.hash.String() != want) {
			t.Errorf("%s is %s (%v), want %q", name, got.hash, err, want)
		}
	}
}
