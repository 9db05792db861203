package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnreported(t *testing.T) {
	t.Parallel()
	const said = "BuildFailed: kustomize build failed: no such file or directory"
	for message, want := range map[string]string{
		"kustomize build failed: no such file or directory":                             "",
		"the manifests do not build: kustomize build failed: no such file or directory": "the manifests do not build",
		"the manifests do not build: kustomize build failed: no such file…":             "the manifests do not build",
		"the source has no such folder: ./app":                                          "the source has no such folder: ./app",
		"a reason: BuildFailed":                                                         "a reason: BuildFailed",
	} {
		if diff := cmp.Diff(want, unreported(message, said)); diff != "" {
			t.Errorf("%s: %s", message, diff)
		}
	}
}
