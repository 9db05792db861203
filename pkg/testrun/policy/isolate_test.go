package policy

import (
	"regexp"
	"slices"
	"testing"

	"github.com/fluxkit/flux/internal/git"
)

// TestAddressPattern compares the pattern of the admission policy with the addresses that are the
// same for flux.
func TestAddressPattern(t *testing.T) {
	t.Parallel()
	remotes := []string{"git.example.com/acme/fleet", "git.example.com/acme/other"}
	pattern := regexp.MustCompile(addressPattern(remotes))
	for _, address := range []string{
		"https://git.example.com/acme/fleet", "https://git.example.com/acme/fleet.git", "https://git.example.com/acme/fleet/",
		"ssh://git@git.example.com/acme/fleet.git", "ssh://git@git.example.com:2222/acme/other", "http://user:token@GIT.example.com:8080/acme/fleet",
		"git@git.example.com:acme/fleet.git",
		// Near misses.
		"https://git.example.com/acme/fleet2", "https://git.example.com/acme", "https://git.example.com/acme/fleet/sub", "https://gitXexample.com/acme/fleet",
		"https://git.example.com.evil.org/acme/fleet", "https://evil.org/git.example.com/acme/fleet", "https://sub.git.example.com/acme/fleet",
		"oci://git.example.com/acme/fleets", "https://evil.org/@git.example.com/acme/fleet",
	} {
		if got, want := pattern.MatchString(address), slices.Contains(remotes, git.ComparableAddress(address)); got != want {
			t.Errorf("%s matches: %t, want %t", address, got, want)
		}
	}
}
