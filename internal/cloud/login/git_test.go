package login_test

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/cloud/login"
)

// TestGitServers checks which Git servers belong to a provider. Without an identity, a login at one of
// them fails later than at another server; it has no environment to send a request to.
func TestGitServers(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential", "AZURE_TENANT_ID": "",
	} {
		t.Setenv(name, value)
	}
	for _, test := range []struct{ provider, api, own, strangers string }{
		{cloud.AWS, "", `https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app https://git-codecommit-fips.us-gov-west-1.amazonaws.com/v1/repos/app
			https://git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/app`,
			`http://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app https://git-codecommit.eu-west-1.amazonaws.com.example.com/app
			https://git-codecommit.evil.s3.amazonaws.com/app https://git-codecommit.eu-west-1.amazonaws.com:8443/app https://git-codecommit.amazonaws.com/app
			https://git-codecommit.eu-west-1.amazonaws.com@example.com/app https://example.com/git-codecommit.eu-west-1.amazonaws.com ssh://git-codecommit.eu-west-1.amazonaws.com/app`},
		{cloud.Azure, "", "https://dev.azure.com/acme/fleet/_git/app https://user@dev.azure.com/acme/fleet/_git/app https://acme.visualstudio.com/fleet/_git/app",
			`http://dev.azure.com/acme https://dev.azure.com.example.com/acme https://evildev.azure.com/acme https://dev.azure.com:8443/acme
			https://visualstudio.com.example.com/acme https://evilvisualstudio.com/acme https://dev.azure.com@example.com/acme ssh://git@ssh.dev.azure.com/v3/acme`},
		{cloud.GitHub, "", "https://github.com/acme/app https://git@github.com/acme/app",
			`http://github.com/acme/app https://github.com.example.com/acme/app https://gist.github.com/acme https://github.example.com/acme/app https://github.com:8443/acme
			https://github.com@example.com/acme ssh://git@github.com/acme/app`},
		{cloud.GitHub, "https://github.example.com/api/v3", "https://github.example.com/acme/app", "https://github.com/acme/app https://api.github.com/acme/app http://github.example.com/acme/app"},
		{cloud.GitHub, "https://api.acme.ghe.com", "https://acme.ghe.com/acme/app", "https://github.com/acme/app https://ghe.com/acme/app https://other.ghe.com/acme/app"},
		{cloud.GitHub, "http://github.example.com/api/v3", "", "https://github.example.com/acme/app http://github.example.com/acme/app"},
	} {
		for _, address := range strings.Fields(test.own) {
			if failure := gitLoginAt(t, test.provider, test.api, address); failure.Step != cloud.Identify || failure.Detail == "" {
				t.Errorf("%s at %s: %v, want an error of the identity", test.provider, address, failure)
			}
		}
		for _, address := range strings.Fields(test.strangers) {
			if failure := gitLoginAt(t, test.provider, test.api, address); failure.Step != cloud.CheckGit {
				t.Errorf("%s at %s: %v, want a refusal", test.provider, address, failure)
			}
		}
	}
}

func gitLoginAt(t *testing.T, provider, api, address string) *cloud.Error {
	t.Helper()
	r := cloud.GitRequest{Provider: provider, URL: address}
	if api != "" {
		r.App = map[string][]byte{"githubAppBaseURL": []byte(api)}
	}
	_, err := login.Git(t.Context(), r)
	return failure(t, provider+" at "+address, err)
}

// TestMalformedGit checks input that is not a provider and a URL, and Secrets of GitHub Apps whose
// values must not be part of errors.
func TestMalformedGit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ provider, url, want string }{
		{"gcp", "https://source.developers.google.com/p/app", `unknown provider "gcp"`},
		{"generic", "https://github.com/acme/app", `unknown provider "generic"`},
		{"azure", "https://user:secret@dev.azure.com:x/acme", "invalid URL"},
	} {
		got, err := login.Git(t.Context(), cloud.GitRequest{Provider: c.provider, URL: c.url})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v, error %v, want %q", c, got, err, c.want)
		}
	}
	for title, c := range map[string]struct {
		app  map[string]string
		want string
	}{
		"no installation":   {map[string]string{"githubAppID": "7", "githubAppPrivateKey": "s3cret"}, "installation owner or ID"},
		"two installations": {map[string]string{"githubAppID": "7", "githubAppInstallationID": "1", "githubAppInstallationOwner": "acme", "githubAppPrivateKey": "s3cret"}, "only one of"},
		"no key":            {map[string]string{"githubAppID": "7", "githubAppInstallationID": "1"}, "private key must be provided"},
		"no such key":       {map[string]string{"githubAppID": "7", "githubAppInstallationID": "1", "githubAppPrivateKey": "s3cret"}, "could not parse private key"},
		"no certificate":    {map[string]string{"githubAppID": "7", "ca.crt": "s3cret"}, "ca.crt contains no PEM certificate"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			r := cloud.GitRequest{Provider: cloud.GitHub, URL: "https://github.com/acme/app", App: map[string][]byte{}}
			for key, value := range c.app {
				r.App[key] = []byte(value)
			}
			_, err := login.Git(t.Context(), r)
			if failed := failure(t, title, err); !strings.Contains(failed.Detail, c.want) || strings.Contains(failed.Detail, "s3cret") {
				t.Errorf("%+v; want %s", failed, c.want)
			}
		})
	}
}
