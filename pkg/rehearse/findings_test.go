package rehearse

import "testing"

// TestStable checks that messages are equal if they differ in revisions, times and ports only.
func TestStable(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{"applied main@sha1:0123456789abcdef0123456789abcdef01234567 in 1.2s", "applied main@sha1:fedcba9876543210fedcba9876543210fedcba98 in 980ms"},
		{"dial tcp 127.0.0.1:2001: connect: connection refused", "dial tcp 127.0.0.1:2002: connect: connection refused"},
	}
	for _, pair := range same {
		if stable(pair[0]) != stable(pair[1]) {
			t.Errorf("%q and %q differ", pair[0], pair[1])
		}
	}
	different := [][2]string{
		{"timeout waiting for Deployment/a", "timeout waiting for Deployment/b"},
		{"chart version 1.2.0 not found", "chart version 1.3.0 not found"},
		{"dial tcp 10.0.0.1:80: connection refused", "dial tcp 10.0.0.2:80: connection refused"},
	}
	for _, pair := range different {
		if stable(pair[0]) == stable(pair[1]) {
			t.Errorf("%q and %q are the same", pair[0], pair[1])
		}
	}
}
