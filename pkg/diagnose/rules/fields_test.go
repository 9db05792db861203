package rules

import (
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// TestFields checks what messages without a rule are about. The near misses have the same words in names, paths and
// values, which do not count.
func TestFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, message, want string }{
		{"GitRepository", "failed to construct auth method with options: invalid 'ssh' auth option: 'identity' is required", "the Secret of .spec.secretRef or .spec.certSecretRef"},
		{"GitRepository", "ref refs/heads/ is invalid; Git refs cannot begin or end with a slash '/'", ".spec.ref"},
		{"GitRepository", "failed to get app information: GET https://api.github.com/app: 599 []", "the GitHub App data in the Secret of .spec.secretRef, and .spec.provider"},
		{"GitRepository", "failed to copy 'unable to checkout' include from ref to x: disk is full", ".spec.include"},
		{"GitRepository", "unable to clone: invalid pkt-len", ".spec.url"},
		{"GitRepository", "something else: 'ref x is invalid'", ""},
		{"OCIRepository", "failed to find layer with media type 'application/x' in artifact", ".spec.layerSelector"},
		{"OCIRepository", "something else in 'no layers found'", ""},
		{"Bucket", "STS provider 'ldap' is not supported for 'gcp' bucket provider", ".spec.sts"},
		{"Bucket", "unexpected answer of the bucket STS-provider", ""},
		{"HelmRelease", "Helm upgrade failed for release apps/web with chart web@1.0.0: \"web\" has no deployed releases", "the revisions of the release (helm history)"},
		{"HelmRelease", "Helm upgrade failed for release apps/post-renderer with chart web@1.0.0: something else", ""},
		{"HelmRelease", "Helm upgrade failed for release apps/web with chart web@1.0.0: unknown post-render strategy: 'x'", ".spec.postRenderers"},
		{"HelmRelease", "failed to create ignore rule selector: invalid kind regex: error parsing regexp", ".spec.driftDetection.ignore"},
		{"Kustomization", "failed to create ignore rule selector: invalid kind regex: error parsing regexp", ""},
		{"Kustomization", "Vault ConfigMap 'apps/vault' is missing the 'x' key", ".spec.decryption"},
		{"Kustomization", "ConfigMap/apps/vault apply failed: something else", ""},
		{"Kustomization", "component path '../x' must be local and relative", ".spec.components"},
		{"Kustomization", "Deployment/apps/component-path query failed: something else", "the object that the message starts with"},
		{"ImagePolicy", "invalid regular expression pattern '(': error parsing regexp", ".spec.filterTags"},
		{"ImageUpdateAutomation", "signing key secret 'x' does not contain a 'git.asc' key", ".spec.git.commit.signingKey"},
		{"Receiver", "oidcProviders[0]: issuerURL is required", ".spec.oidcProviders"},
		{"ArtifactGenerator", "pathPattern \"{x\": invalid capture starting at offset 0: missing closing brace", ".spec.pathPattern"},
	} {
		s := failing(t, tt.kind, "Other", tt.message, "")
		if got := s.field(tt.message); got != tt.want {
			t.Errorf("%s: %s\n is about %q, not %q: %q", tt.kind, tt.message, got, tt.want, failure.Parts(tt.message))
		}
		f, _ := s.Status()
		if fix := strings.Join(f.Fixes, "\n"); f.Code == "not-ready" && tt.want != "" && !strings.Contains(fix, "check "+tt.want+" of ") {
			t.Errorf("%s: %s\n has the fixes %q", tt.kind, tt.message, fix)
		}
	}
}
