package login_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/cloud/login"
	"github.com/fluxkit/flux/internal/helper"
)

// TestRegistries checks which hosts belong to a provider. Without an identity, a login at one of
// them fails later than at another host; it has no environment to send a request to.
func TestRegistries(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential", "AZURE_TENANT_ID": "", "GOOGLE_APPLICATION_CREDENTIALS": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	for _, test := range []struct{ provider, own, strangers string }{
		{cloud.AWS, `123456789012.dkr.ecr.eu-west-1.amazonaws.com 123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com
			123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn 123456789012.dkr-ecr.eu-west-1.on.aws public.ecr.aws`,
			`ghcr.io docker.io amazonaws.com dkr.ecr.eu-west-1.amazonaws.com 12345678901.dkr.ecr.eu-west-1.amazonaws.com
			123456789012.dkr.ecr.eu-west-1.amazonaws.com.example.com 123456789012.dkr.ecr.eu-west-1.amazonaws.org
			123456789012.dkr.ecr.eu-west-1.amazonaws.com:8443 example.com.123456789012.dkr.ecr.eu-west-1.amazonaws.com
			123456789012.dkr.ecr.example.com.amazonaws.com evil-public.ecr.aws public.ecr.aws.example.com 127.0.0.1:5000 localhost:5000
			fluxtest.azurecr.io europe-docker.pkg.dev`},
		{cloud.Azure, "fluxtest.azurecr.io fluxtest.azurecr.cn fluxtest.azurecr.us",
			"azurecr.io fluxtest.azurecr.io.example.com fluxtest-azurecr.io fluxtest.azurecr.io:8443 fluxtest.azurecr.com ghcr.io 127.0.0.1:5000 public.ecr.aws gcr.io"},
		{cloud.GCP, "europe-docker.pkg.dev gcr.io eu.gcr.io",
			"docker.pkg.dev evilgcr.io gcr.io.example.com europe-docker.pkg.dev.example.com europe-docker.pkg.dev:8443 pkg.dev ghcr.io 127.0.0.1:5000 fluxtest.azurecr.io"},
	} {
		for _, host := range strings.Fields(test.own) {
			if failure := loginAt(t, test.provider, host); failure.Step != cloud.Identify {
				t.Errorf("%s at %s: %v, want an error of the identity", test.provider, host, failure)
			}
		}
		for _, host := range strings.Fields(test.strangers) {
			if failure := loginAt(t, test.provider, host); failure.Step != cloud.CheckRegistry {
				t.Errorf("%s at %s: %v, want a refusal", test.provider, host, failure)
			}
		}
	}
}

func loginAt(t *testing.T, provider, host string) *cloud.Error {
	t.Helper()
	_, err := login.Login(t.Context(), cloud.Input{Request: cloud.Request{Provider: provider, Registry: host}}, nil)
	return failure(t, provider+" at "+host, err)
}

// failure returns the step that failed and its error.
func failure(t *testing.T, title string, err error) *cloud.Error {
	t.Helper()
	var failed *helper.Error
	if !errors.As(err, &failed) {
		t.Fatalf("%s: error %v, want that of a step", title, err)
	}
	return &cloud.Error{Step: cloud.Step(failed.Step), Detail: failed.Text}
}

// TestMalformed checks input that is not a provider and a host.
func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ provider, registry, want string }{
		{"generic", "ghcr.io", `unknown provider "generic"`},
		{"aws", "example.com/public.ecr.aws", "registries must be valid"},
		{"azure", "evil.example.com#.azurecr.io", "registries must be valid"},
		{"gcp", "user@evil.example.com/x-docker.pkg.dev", "registries must be valid"},
		{"azure", "", ""},
	} {
		got, err := login.Login(t.Context(), cloud.Input{Request: cloud.Request{Provider: c.provider, Registry: c.registry}}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, error %v, want %q", c, got, err, c.want)
		}
	}
}
