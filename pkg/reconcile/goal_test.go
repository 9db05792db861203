package reconcile

import "testing"

func TestRevisionMatches(t *testing.T) {
	t.Parallel()
	const have = "main@sha1:6f9a1b2c3d4e5f60718293a4b5c6d7e8f9012345"
	for _, test := range []struct {
		have, want string
		match      bool
	}{
		{have, have, true},
		{have, "sha1:6f9a1b2c3d4e5f60718293a4b5c6d7e8f9012345", true},
		{have, "6f9a1b2c3d4e5f60718293a4b5c6d7e8f9012345", true},
		{have, "main@sha1:6f9a1b2", true},
		{have, "6f9a1b2", true},
		{have, "6f9a1b", false},
		{have, "main", false},
		{have, "dev@sha1:6f9a1b2", false},
		{have, "a1b2c3d4e5f", false},
		{"sha256:83a3c595163a6ff0333e", "83a3c595", true},
		{"1.2.3", "1.2.3", true},
		{"1.2.3", "1.2", false},
		{"", "6f9a1b2", false},
	} {
		if got := RevisionMatches(test.have, test.want); got != test.match {
			t.Errorf("%q at %q: %t", test.have, test.want, got)
		}
	}
}
