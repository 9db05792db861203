package reversal

import (
	"testing"

	"github.com/fluxkit/flux/internal/ci"
)

// TestKindOf checks that only public hosts are known by their names: the token in the environment is sent to the host.
func TestKindOf(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"https://github.com": ci.GitHub, "https://gitlab.com": ci.GitLab, "https://codeberg.org": ci.Gitea, "https://gitea.com": ci.Gitea,
		"https://bitbucket.org": ci.BitbucketCloud, "https://github.com:8443": ci.GitHub,
		"https://github.example.com": "", "https://gitlab.example.com": "", "https://github.com.example.com": "", "https://mygithub.com": "",
		"https://bitbucket.example.com": "", "https://example.com/github.com": "", "https://github.com@example.com": "", "": "", ":": "",
	} {
		if got := kindOf(server); got != want {
			t.Errorf("the kind of %q is %q, want %q", server, got, want)
		}
	}
}
