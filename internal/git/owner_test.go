package git

import "testing"

func TestHasOwner(t *testing.T) {
	t.Parallel()
	remotes := []string{ComparableAddress("git@github.com:Acme/fleet.git"), ComparableAddress("https://git.example.com/team/group/fleet")}
	for address, want := range map[string]bool{
		"oci://ghcr.io/acme/manifests":                true,
		"oci://ghcr.io/acme/fleet/apps":               true,
		"oci://registry.example.com/mirror/team/apps": true,
		"oci://ghcr.io/acme-labs/manifests":           false,
		"oci://acme.example.com/manifests":            false,
		"oci://ghcr.io/group/fleet":                   false,
		"oci://ghcr.io/":                              false,
	} {
		if got := HasOwner(address, remotes); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
}
