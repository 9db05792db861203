package sshkey

import (
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestPublished compares with the real keys of the hosts.
func TestPublished(t *testing.T) {
	t.Parallel()
	const (
		github    = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
		gitlab    = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf"
		codeberg  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIVIC02vnjFyL+I4RHfvIGNtOgJMe769VTF1VR4EB3ZB"
		bitbucket = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPIQmuzMBuKdWeF4+a2sjSSpBK0iqitSQ+5BM9KhpexuGt20JpTVM7u5BDZngncgrqDMbWdxMWWOGtZ9UgbqgZE="
	)
	for _, test := range []struct {
		address, key string
		same, known  bool
	}{
		{"github.com:22", github, true, true},
		{"GitHub.com:22", github, true, true},
		{"gitlab.com:22", gitlab, true, true},
		{"codeberg.org:22", codeberg, true, true},
		{"bitbucket.org:22", bitbucket, true, true},
		{"github.com:22", gitlab, false, true},
		{"github.com:2222", github, false, false},
		{"github.com.example.com:22", github, false, false},
	} {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(test.key))
		if err != nil {
			t.Fatal(err)
		}
		if same, known := Published(HostKey{key, test.address}); same != test.same || known != test.known {
			t.Errorf("%s with %s…: %v, %v; want %v, %v", test.address, test.key[:20], same, known, test.same, test.known)
		}
	}
	for host, fingerprints := range published {
		if len(fingerprints) != 3 {
			t.Errorf("%s has %d fingerprints", host, len(fingerprints))
		}
	}
}
