package controllers_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestTried(t *testing.T) {
	t.Parallel()
	status := func(kv ...string) controllers.Object {
		s := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			s[kv[i]] = kv[i+1]
		}
		return controllers.Object{"status": s}
	}
	for name, c := range map[string]struct {
		kind, source, revision string
		object                 controllers.Object
		want                   bool
	}{
		"same revision":          {"Kustomization", "GitRepository", "main@sha1:aa", status("lastAttemptedRevision", "main@sha1:aa"), true},
		"earlier revision":       {"Kustomization", "GitRepository", "main@sha1:bb", status("lastAttemptedRevision", "main@sha1:aa"), false},
		"no attempt":             {"Kustomization", "Bucket", "main@sha1:bb", status(), false},
		"chart":                  {"HelmRelease", "HelmChart", "1.2.3", status("lastAttemptedRevision", "1.2.2"), false},
		"chart by OCI":           {"HelmRelease", "OCIRepository", "1.2.3@sha256:cc", status("lastAttemptedRevision", "1.2.3+cc", "lastAttemptedRevisionDigest", "sha256:cc"), true},
		"old chart by OCI":       {"HelmRelease", "OCIRepository", "1.2.3@sha256:dd", status("lastAttemptedRevision", "1.2.3+cc", "lastAttemptedRevisionDigest", "sha256:cc"), false},
		"older controller":       {"HelmRelease", "OCIRepository", "1.2.3@sha256:dd", status("lastAttemptedRevision", "1.2.3+cc"), true},
		"source without a field": {"HelmRelease", "ExternalArtifact", "latest@sha256:dd", status("lastAttemptedRevision", "1.2.3"), true},
		"kind without attempts":  {"ImageRepository", "GitRepository", "main@sha1:aa", status(), true},
	} {
		k, _ := controllers.FindKind(c.kind)
		source, _ := controllers.FindKind(c.source)
		if got := k.Tried(c.object, source, c.revision); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
