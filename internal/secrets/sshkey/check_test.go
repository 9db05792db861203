package sshkey

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// TestCallback checks that hosts are found by name, by pattern and hashed; another key, a revoked
// key and another host are refused.
func TestCallback(t *testing.T) {
	t.Parallel()
	key := func(seed byte) ssh.PublicKey {
		signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed)))
		if err != nil {
			t.Fatal(err)
		}
		return signer.PublicKey()
	}
	own, other := key(1), key(2)
	line := func(host string, key ssh.PublicKey) string {
		return host + " " + string(ssh.MarshalAuthorizedKey(key))
	}
	hashed := line(knownhosts.HashHostname("git.example.com"), own)
	for name, test := range map[string]struct {
		text    string
		address string
		listed  bool
		good    bool
	}{
		"by name":       {line("git.example.com", own), "git.example.com:22", true, true},
		"hashed":        {hashed, "git.example.com:22", true, true},
		"by pattern":    {line("*.example.com", own), "git.example.com:22", true, true},
		"another port":  {line("[git.example.com]:2222", own), "git.example.com:2222", true, true},
		"another key":   {line("git.example.com", other), "git.example.com:22", true, false},
		"several":       {line("git.example.com", other) + line("git.example.com", own), "git.example.com:22", true, true},
		"revoked":       {line("git.example.com", other) + "@revoked " + line("*", own), "git.example.com:22", true, false},
		"another host":  {line("git.example.com", own), "example.com:22", false, false},
		"standard port": {line("[git.example.com]:2222", own), "git.example.com:22", false, false},
		"nothing":       {"# a comment\n", "git.example.com:22", false, false},
	} {
		check, algorithms, err := Callback([]byte(test.text), test.address)
		if listed := !errors.Is(err, ErrUnknownHost); listed != test.listed || listed && err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !test.listed {
			continue
		}
		if !slices.Equal(algorithms, []string{ssh.KeyAlgoED25519}) {
			t.Errorf("%s: by %v", name, algorithms)
		}
		if err := check("ignored:22", nil, own); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Callback([]byte("git.example.com nonsense\n"), "git.example.com:22"); err == nil || !strings.Contains(err.Error(), "invalid known_hosts") {
		t.Errorf("an invalid known_hosts file: %v", err)
	}
}
