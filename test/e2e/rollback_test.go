package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestRollback rolls back a Kustomization and undoes it. The Kustomization that applies the source keeps the pin,
// because it has not set the commit.
func TestRollback(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	source := strings.ReplaceAll(strings.Replace(gitRepository, "name: app", "name: pinned", 1), "${URL}", f.git.address)
	f.git.commit("First", map[string]string{"app/settings.yaml": plainMap, "sources/pinned.yaml": source})
	first := f.git.revision()
	failure{name: "rollback", objects: strings.Join([]string{
		gitRepository, applied("owner", "GitRepository", "app", "sources", ""), applied("web", "GitRepository", "pinned", "app", ""),
	}, "---\n")}.prepare(f)
	in := func(args ...string) string { return f.shell.run("flux", append(args, "-n", f.namespace)...) }
	in("wait", "ks", "owner", "web")
	f.git.commit("Second", map[string]string{"app/settings.yaml": strings.Replace(plainMap, "a: b", "a: c", 1)})
	in("reconcile", "ks", "web", "--with-source")
	data := func() string {
		return f.shell.run("kubectl", "-n", f.namespace, "get", "configmap", "settings", "-o", "jsonpath={.data.a}")
	}
	commit := func() string {
		return f.shell.run("kubectl", "-n", f.namespace, "get", "gitrepository", "pinned", "-o", "jsonpath={.spec.ref.commit}")
	}
	check := func(when, wantData, wantCommit string) {
		t.Helper()
		if got := fmt.Sprint(data(), " ", commit()); got != wantData+" "+wantCommit {
			t.Errorf("%s: %q, want %q", when, got, wantData+" "+wantCommit)
		}
	}
	check("before", "c", "")
	if plan := in("rollback", "ks", "web", "--yes", "-o", "json"); !strings.Contains(plan, `"result": "rolledBack"`) || strings.Contains(plan, `"suspend"`) {
		t.Errorf("the result of the rollback:\n%s", plan)
	}
	_, pin, _ := strings.Cut(first, ":")
	check("after the rollback", "b", pin)
	in("reconcile", "ks", "owner", "--with-source")
	in("reconcile", "ks", "web", "--with-source")
	check("after the owner was reconciled", "b", pin)
	in("rollback", "ks", "web", "--undo", "--yes")
	check("after --undo", "c", "")
}
