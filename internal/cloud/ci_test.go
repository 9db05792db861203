package cloud

import (
	"errors"
	"testing"
)

func envOf(pairs ...string) func(string) string {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return set[name] }
}

// TestJobLogin checks that the token of a job is for the registry of its own server only.
func TestJobLogin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, registry, server string
		step                       Step // "" is a success
	}{
		{GitHub, "ghcr.io", "", ""},
		{GitHub, "ghcr.io", "https://github.com", ""},
		{GitHub, "containers.ghe.example.com", "https://ghe.example.com", ""},
		{GitHub, "ghcr.io", "https://ghe.example.com", CheckRegistry},
		{GitHub, "ghcr.io", "https://github.com.example.com", CheckRegistry},
		{GitHub, "containers.ghe.example.com", "https://github.com", CheckRegistry},
		{GitHub, "ghcr.io.example.com", "https://github.com", CheckRegistry},
		{GitHub, "ghcr.io:8443", "https://github.com", CheckRegistry},
		{GitHub, "docker.pkg.github.com", "https://github.com", CheckRegistry},
		{GitLab, "registry.gitlab.com", "registry.gitlab.com", ""},
		{GitLab, "gitlab.example.com:5050", "gitlab.example.com:5050", ""},
		{GitLab, "gitlab.example.com", "gitlab.example.com:5050", CheckRegistry},
		{GitLab, "registry.gitlab.com", "registry.gitlab.com.example.com", CheckRegistry},
		{GitLab, "registry.gitlab.com", "", Identify},
	} {
		env := envOf("GITHUB_SERVER_URL", c.server, "GITHUB_ACTOR", "me", "GITHUB_TOKEN", "t", "CI_REGISTRY", c.server, "CI_REGISTRY_USER", "me", "CI_JOB_TOKEN", "t")
		got, err := jobLogin(Request{c.provider, c.registry}, env)
		var failed *Error
		if c.step == "" && (err != nil || got != Credentials{"me", "t"}) || c.step != "" && (!errors.As(err, &failed) || failed.Step != c.step || got != Credentials{}) {
			t.Errorf("%v: got %v %v", c, got, err)
		}
	}
}

// TestFederated checks when the OIDC token of a job is used: not if the environment has another identity.
func TestFederated(t *testing.T) {
	t.Parallel()
	const actions = "ACTIONS_ID_TOKEN_REQUEST_URL"
	for _, c := range []struct {
		provider string
		env      []string
		want     int // number of annotations
	}{
		{AWS, []string{actions, "u", "AWS_ROLE_ARN", "r"}, 1},
		{AWS, []string{gitlabToken, "t", "AWS_ROLE_ARN", "r"}, 1},
		{AWS, []string{"AWS_ROLE_ARN", "r"}, 0},
		{AWS, []string{actions, "u"}, 0},
		{AWS, []string{actions, "u", "AWS_ROLE_ARN", "r", "AWS_WEB_IDENTITY_TOKEN_FILE", "f"}, 0},
		{AWS, []string{actions, "u", "AWS_ROLE_ARN", "r", "AWS_ACCESS_KEY_ID", "k"}, 0},
		{Azure, []string{actions, "u", "AZURE_TENANT_ID", "t", "AZURE_CLIENT_ID", "c"}, 2},
		{Azure, []string{actions, "u", "AZURE_CLIENT_ID", "c"}, 0},
		{Azure, []string{actions, "u", "AZURE_TENANT_ID", "t", "AZURE_CLIENT_ID", "c", "AZURE_CLIENT_SECRET", "s"}, 0},
		{GCP, []string{actions, "u", "GCP_WORKLOAD_IDENTITY_PROVIDER", "p"}, 1},
		{GCP, []string{actions, "u", "GCP_WORKLOAD_IDENTITY_PROVIDER", "p", "GCP_SERVICE_ACCOUNT", "a"}, 2},
		{GCP, []string{actions, "u", "GCP_SERVICE_ACCOUNT", "a"}, 0},
		{GCP, []string{actions, "u", "GCP_WORKLOAD_IDENTITY_PROVIDER", "p", "GOOGLE_APPLICATION_CREDENTIALS", "f"}, 0},
		{"generic", []string{actions, "u", "AWS_ROLE_ARN", "r"}, 0},
	} {
		if got := federated(c.provider, envOf(c.env...)); len(got) != c.want {
			t.Errorf("%s with %v: %v, want %d annotations", c.provider, c.env, got, c.want)
		}
	}
}
