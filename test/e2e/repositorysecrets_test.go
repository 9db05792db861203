package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/test/support/testsops"
)

// given contains the edits of the layout with a tenant that set all variables.
func given() []string {
	return []string{"    substitute: {team: dev}\n    substituteFrom: [{kind: Secret, name: cluster-vars}]", "    substitute: {team: dev, domain: example.com}"}
}

// sealedToken returns the encrypted Secret of the layout with a tenant.
func sealedToken(t *testing.T, keys *testsops.Sealer) string {
	t.Helper()
	value, err := keys.Value("str", "correct horse", "stringData:token:")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := keys.YAML("apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\n  namespace: apps\nstringData:\n  token: " + value + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

// tokenFile is a test file that expects the decrypted Secret.
const tokenFile = `apiVersion: test.fluxkit.dev/v1
kind: Test
metadata: {name: token}
spec:
  steps:
  - expect:
    - value: {object: {apiVersion: v1, kind: Secret, namespace: apps, name: token}, expression: object.data.token, equals: Y29ycmVjdCBob3JzZQ==}
`

// testDecryption encrypts a Secret for an age key. The near miss is another age key.
func testDecryption(sh *shell) {
	keys, err := testsops.New()
	if err != nil {
		sh.t.Fatal(err)
	}
	other, err := testsops.New()
	if err != nil {
		sh.t.Fatal(err)
	}
	dir := writeLayout(sh, "tenancy", map[string]string{
		"tenants/production/token.yaml": sealedToken(sh.t, keys),
		"tests/token.fluxtest.yaml":     tokenFile,
	}, given()...)
	right, wrong := tempFile(sh.t, "right.agekey", keys.Identity.String()+"\n"), tempFile(sh.t, "wrong.agekey", other.Identity.String()+"\n")
	r, text := runTest(sh, dir, 0, tenant, "--age-key-file", right)
	checkReady(sh.t, r, [2]string{"Kustomization", "tenants"}, [2]string{"Kustomization", "dev-team"})
	if len(r.Tests) != 1 || r.Tests[0].Outcome != "passed" {
		sh.t.Errorf("tests %+v", r.Tests)
	}
	if len(r.Generated) != 1 || r.Generated[0].Object.Name != "sops-age" || !slices.Equal(r.Generated[0].Keys, []string{"flux.agekey"}) {
		sh.t.Errorf("generated %+v, want the Secret with the key", r.Generated)
	}
	r, wrongText := runTest(sh, dir, 1, tenant, "--age-key-file", wrong)
	if len(r.Causes) != 1 || r.Causes[0].Object.Name != "tenants" || !strings.Contains(r.Causes[0].Message, "the keys in Secret flux-system/sops-age do not decrypt") ||
		!strings.Contains(strings.Join(r.Causes[0].Remedies, "\n"), "--age-key-file") || len(r.Missing) > 0 {
		sh.t.Errorf("causes %+v, missing %+v", r.Causes, r.Missing)
	}
	for _, private := range []string{keys.Identity.String(), other.Identity.String(), "correct horse"} {
		if strings.Contains(text+wrongText, private) {
			sh.t.Errorf("%q is in a report:\n%s%s", private, text, wrongText)
		}
	}
}
