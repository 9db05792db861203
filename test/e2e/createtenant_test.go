package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestCreateTenants checks that the permissions of a tenant's service account apply.
func TestCreateTenants(t *testing.T) {
	t.Parallel()
	f := newTeam(t)
	blue, red := newTenant(f, f.namespace+"-blue"), newTenant(f, f.namespace+"-red")
	for _, tenant := range []*fixture{blue, red} {
		const mine = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {by: %s}\n"
		tenant.git.commit("Run app", map[string]string{"deploy/app.yaml": fmt.Sprintf(mine, tenant.namespace, tenant.namespace)})
		createGitRepository(tenant)
		createKustomization(tenant, "GitRepository/app", tenant.git.revision(), "--service-account="+tenant.namespace)
		checkField(tenant, configMaps, "app", "data.by", tenant.namespace)
	}
	checkTrespass(red, blue.namespace)
	checkField(blue, configMaps, "app", "data.by", blue.namespace)
}

// newTenant creates a tenant with a repository, who works in a namespace.
func newTenant(f *fixture, name string) *fixture {
	f.t.Helper()
	f.shell.run("flux", "create", "tenant", name, "--with-namespace="+name, "--cluster-role=edit")
	removeFinally(f, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")
	tenant := *f.in(name)
	tenant.shell = f.shell.with("FLUX_SYSTEM_NAMESPACE=" + name)
	tenant.git = newGit(f.shell, f.cluster, name)
	tenant.seed(gitSecret)
	return &tenant
}

// checkTrespass checks that the tenant cannot change other namespaces.
func checkTrespass(f *fixture, into string) {
	f.t.Helper()
	f.git.commit("Take over", map[string]string{"grab/app.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {by: me}\n", into)})
	f.shell.run("flux", "reconcile", "source", "git", "app")
	_, stderr, err := f.shell.try("flux", "create", "kustomization", "grab", "--source=GitRepository/app", "--path=./grab",
		"--service-account="+f.namespace, "--interval=1h")
	want := fmt.Sprintf(`User "system:serviceaccount:%s:%s" cannot patch resource "configmaps" in API group "" in the namespace "%s"`, f.namespace, f.namespace, into)
	if err == nil || !strings.Contains(stderr, want) {
		f.t.Errorf("a tenant's Kustomization reaches into %s: %v\n%s", into, err, stderr)
	}
}
