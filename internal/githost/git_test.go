package githost

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/hint"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://example.com/org/fleet", "https://me@example.com/fleet.git", "ssh://git@example.com/fleet",
		"ssh://git@example.com:2222/fleet", "http://127.0.0.1:13000/fleet.git", "ssh://git@[::1]:2222/fleet",
	} {
		if u, err := ParseURL(address, true); err != nil || u.String() != address {
			t.Errorf("%s: %v, %v", address, u, err)
		}
	}
	for address, want := range map[string]string{
		"":                                "a repository URL is required",
		"example.com/fleet":               "invalid URL in --url",
		"http://example.com/fleet":        "an http URL sends credentials unencrypted",
		"ftp://example.com/fleet":         `unsupported URL scheme "ftp"`,
		"file:///tmp/fleet":               `unsupported URL scheme "file"`,
		"https://example.com":             "the URL \"https://example.com\" has no repository path",
		"https://example.com/":            "the URL \"https://example.com/\" has no repository path",
		"https:///fleet":                  "the URL \"https:///fleet\" has no host",
		"https://me:s3cret@example.com/x": "the URL https://example.com/x contains a password, which",
		"https://example.com/x?token=abc": "the URL in --url has a query",
		"git@example.com:org/fleet.git":   `the address "git@example.com:org/fleet.git" is not a URL`,
		"https://exa mple.com/x":          "invalid URL in --url",
	} {
		_, err := ParseURL(address, false)
		var wrong *hint.Error
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) || wrong.Hint == "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	_, err := ParseURL("git@example.com:org/fleet.git", false)
	var wrong *hint.Error
	if !errors.As(err, &wrong) || wrong.Hint != "write --url=ssh://git@example.com/org/fleet.git" {
		t.Errorf("no remedy: %v", err)
	}
}

func TestSyncURL(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		git  Git
		want string
	}{
		"token over https":       {Git{Access: Access{URL: "https://example.com:8443/fleet"}, TokenAuth: true}, "https://example.com:8443/fleet"},
		"token over http":        {Git{Access: Access{URL: "http://127.0.0.1:13000/fleet.git"}, TokenAuth: true}, "http://127.0.0.1:13000/fleet.git"},
		"token, cloned over ssh": {Git{Access: Access{URL: "ssh://git@example.com:2222/fleet"}, TokenAuth: true}, "https://example.com/fleet"},
		"token, IPv6":            {Git{Access: Access{URL: "ssh://git@[::1]:2222/fleet"}, TokenAuth: true}, "https://[::1]/fleet"},
		"key over ssh":           {Git{Access: Access{URL: "ssh://me@example.com:2222/fleet"}, SSHUsername: "git"}, "ssh://me@example.com:2222/fleet"},
		"key, no user":           {Git{Access: Access{URL: "ssh://example.com/fleet"}, SSHUsername: "git"}, "ssh://git@example.com/fleet"},
		"key, cloned over https": {Git{Access: Access{URL: "https://example.com:8443/fleet"}, SSHUsername: "git"}, "ssh://git@example.com/fleet"},
		"key, another host":      {Git{Access: Access{URL: "https://example.com/fleet"}, SSHUsername: "git", SSHHostname: "ssh.example.com:443"}, "ssh://git@ssh.example.com:443/fleet"},
		"key, IPv6":              {Git{Access: Access{URL: "https://[::1]:8443/fleet"}, SSHUsername: "git"}, "ssh://git@[::1]/fleet"},
	} {
		r, err := test.git.Ensure(t.Context())
		if err != nil || r.SyncURL != test.want {
			t.Errorf("%s: %q, %v", name, r.SyncURL, err)
		}
	}
}
