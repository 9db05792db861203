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

// TestRollbackRelease rolls back a HelmRelease whose upgrade has failed to the chart version before it, and undoes it.
func TestRollbackRelease(t *testing.T) {
	t.Parallel()
	f := newShared(t)
	pack := func(version, template string) []byte {
		return archive(t, map[string]string{
			"app/Chart.yaml": strings.Replace(chart, "1.2.3", version, 1), "app/templates/app.yaml": strings.Replace(chartTemplate, "{{ .Values.from }}", "v{{ .Chart.Version }}", 1),
			"app/templates/more.yaml": template,
		})
	}
	rejected := "apiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {ports: [{port: 99999}]}\n"
	address := serveCharts(t, map[string][]byte{"1.2.3": pack("1.2.3", ""), "2.0.0": pack("2.0.0", rejected)})
	in := func(args ...string) (string, error) {
		stdout, stderr, err := f.shell.try("flux", append(args, "-n", f.namespace)...)
		return stdout + stderr, err
	}
	must := func(args ...string) string {
		t.Helper()
		output, err := in(args...)
		if err != nil {
			t.Fatalf("flux %s: %v\n%s", strings.Join(args, " "), err, output)
		}
		return output
	}
	release := func(version string) []string {
		return []string{"create", "helmrelease", "app", "--source=HelmRepository/charts", "--chart=app", "--interval=1h", "--chart-version=" + version}
	}
	must("create", "source", "helm", "charts", "--url="+address, "--interval=1h")
	must(release("1.2.3")...)
	if output, err := in(release("2.0.0")...); err == nil {
		t.Fatalf("the upgrade has not failed:\n%s", output)
	}
	if plan := must("rollback", "hr", "app", "--yes", "-o", "json"); !strings.Contains(plan, `"result": "rolledBack"`) {
		t.Errorf("the result of the rollback:\n%s", plan)
	}
	checkField(f, configMaps, "app", "data.from", "v1.2.3")
	checkField(f, resource(t, "HelmRelease"), "app", "spec.chart.spec.version", "1.2.3")
	if output := must("why", "hr/app"); !strings.Contains(output, "No problem found") {
		t.Errorf("after the rollback:\n%s", output)
	}
	must("rollback", "hr", "app", "--undo", "--yes", "--wait=false")
	checkField(f, resource(t, "HelmRelease"), "app", "spec.chart.spec.version", "2.0.0")
}
