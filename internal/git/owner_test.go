package git

import "testing"

func TestOtherOwner(t *testing.T) {
	t.Parallel()
	github := []string{ComparableAddress("git@github.com:Acme/fleet.git"), ComparableAddress("https://github.com/fork/fleet")}
	for _, row := range []struct {
		address string
		remotes []string
		want    bool
	}{
		{"oci://ghcr.io/fluxcd/flux-manifests", github, true},
		{"oci://ghcr.io/acme-labs/manifests", github, true},
		{"oci://ghcr.io/mirror/acme/manifests", github, true},
		{"oci://ghcr.io/acme/manifests", github, false},
		{"oci://ghcr.io/fork/manifests", github, false},
		{"oci://ghcr.io/fluxcd/flux-manifests", nil, false},
		{"oci://ghcr.io/fluxcd/flux-manifests", []string{ComparableAddress("https://git.example.com/acme/fleet")}, false},
		{"oci://ghcr.io/fluxcd/flux-manifests", []string{ComparableAddress("/srv/git/fleet.git")}, false},
		{"oci://ghcr.io/fluxcd/flux-manifests", append(github, ComparableAddress("https://git.example.com/mirror/fleet")), false},
		{"oci://123.dkr.ecr.eu-west-1.amazonaws.com/manifests", github, false},
		{"oci://quay.io/other/manifests", github, false},
		{"oci://registry.gitlab.com/other/fleet/manifests", []string{ComparableAddress("https://gitlab.com/acme/sub/fleet.git")}, true},
		{"oci://registry.gitlab.com/acme/sub/manifests", []string{ComparableAddress("https://gitlab.com/acme/sub/fleet.git")}, false},
	} {
		if got := OtherOwner(row.address, row.remotes); got != row.want {
			t.Errorf("%s, remotes %q: %t, want %t", row.address, row.remotes, got, row.want)
		}
	}
}
