package rest

import "testing"

func TestSSHLogin(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"ssh://gitea@git.example.com:2222/a/b.git": "gitea git.example.com:2222", "git@git.example.com:a/b.git": "git git.example.com",
		"ssh://git@git.example.com:22/a/b.git": "git git.example.com", "": " ", "nonsense": " ",
	} {
		if user, host := sshLogin(address); user+" "+host != want {
			t.Errorf("%q: user %q, host %q", address, user, host)
		}
	}
}
