package faults_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// replaced restarts the API server with the same port and data during a watch and reconciliations.
// Their connections stay interrupted until other changes have been made, so they miss these
// changes.
func (w *world) replaced(t *testing.T) {
	const namespace, together = "replaced", "together"
	w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	w.seed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+together+"}\n")
	w.kustomizations(t, together, "reconciled", "doomed")
	w.kustomizations(t, namespace, "same", "changes", "goes", "reconciled", "doomed")
	line, err := testcluster.NewLine(w.cluster, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	})
	watch := w.start(t, line.Kubeconfig, "get", "ks", "-n", namespace, "--watch")
	all := w.start(t, line.Kubeconfig, "get", "all", "-n", namespace, "--watch")
	one := w.start(t, line.Kubeconfig, "reconcile", "ks", "reconciled", "-n", namespace)
	doomed := w.start(t, line.Kubeconfig, "reconcile", "ks", "doomed", "-n", namespace)
	several := w.start(t, line.Kubeconfig, "reconcile", "ks", "--all", "-n", together)
	watch.until(watch.stdout, "first of same")
	all.until(all.stdout, "first of same")
	one.until(one.stderr, "waiting for Kustomization")
	doomed.until(doomed.stderr, "waiting for Kustomization")

	for _, name := range []string{"reconciled", "doomed"} {
		w.asked(t, together, name)
	}

	check(t, line.Cut())
	w.cluster.Sandbox(t, "down")
	w.cluster.Sandbox(t, "up", "--controllers=none")
	w.say(t, namespace, "changes", "second of changes")
	w.say(t, namespace, "reconciled", "second of reconciled")
	w.remove(t, namespace, "goes")
	w.remove(t, namespace, "doomed")
	w.say(t, together, "reconciled", "second of reconciled")
	w.remove(t, together, "doomed")
	check(t, line.Restore())

	one.exits(0)
	if !strings.Contains(one.stderr.String(), "main@sha1:2") {
		one.fatalf("the new revision is not reported")
	}
	doomed.exits(1)
	if !strings.Contains(doomed.stderr.String(), "deleted") {
		doomed.fatalf("the deletion is not reported")
	}
	several.exits(1)
	if !strings.Contains(several.stderr.String(), "main@sha1:2") {
		several.fatalf("the new revision is not reported")
	}
	// It is unknown whether the response to its reconciliation request arrived before the
	// interruption.
	if !regexp.MustCompile("doomed.*(deleted|not found)").MatchString(several.stderr.String()) {
		several.fatalf("the deletion is not reported")
	}
	for _, p := range []*process{watch, all} {
		p.until(p.stdout, "second of changes")
		p.until(p.stdout, "deleted")
		p.until(p.stdout, "second of reconciled")
	}
	w.kustomizations(t, namespace, "new")
	for _, p := range []*process{watch, all} {
		p.until(p.stdout, "first of new")
		p.interrupt()
		if n := strings.Count(p.stdout.String(), "first of same"); n != 1 {
			p.fatalf("the unchanged object is printed %d times", n)
		}
	}
}

// asked waits until the reconciliation of an object is requested.
func (w *world) asked(t *testing.T, namespace, name string) {
	t.Helper()
	_, r := kustomization()
	err := w.cluster.Client.Follow(t.Context(), r, kube.Selection{Namespace: namespace, Name: name}, "", func(e kube.Event) (bool, error) {
		return controllers.Annotation(e.Object, "reconcile.fluxcd.io/requestedAt") != "", nil
	})
	check(t, err)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
