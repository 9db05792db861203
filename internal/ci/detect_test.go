package ci_test

import (
	"testing"

	"github.com/fluxkit/flux/internal/ci"
)

func TestDetected(t *testing.T) {
	t.Parallel()
	for variable, want := range map[[2]string]bool{
		{"GITHUB_ACTIONS", "true"}: true, {"GITEA_ACTIONS", "true"}: true, {"FORGEJO_ACTIONS", "true"}: true, {"GITLAB_CI", "true"}: true,
		{"TF_BUILD", "True"}: true, {"BITBUCKET_BUILD_NUMBER", "7"}: true, {"JENKINS_URL", "https://ci.example.com"}: true, {"BUILDKITE", "true"}: true,
		{"CIRCLECI", "true"}: true, {"DRONE", "true"}: true, {"CI", "woodpecker"}: true, {"CI", "1"}: true, {"TEAMCITY_VERSION", "2026.1"}: true,
		{"CI", "false"}: false, {"CI", "0"}: false, {"CI", ""}: false, {"GITHUB_ACTIONS", "false"}: false, {"HOME", "/root"}: false,
	} {
		env := func(name string) string {
			if name == variable[0] {
				return variable[1]
			}
			return ""
		}
		if got := ci.Detected(env); got != want {
			t.Errorf("%s=%s: %t", variable[0], variable[1], got)
		}
	}
}
