package faults_test

import (
	"fmt"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/tier"
)

// TestKilledUninstall kills uninstall at its requests and output lines. The runs on one
// server are sequential, because uninstall also removes the CustomResourceDefinitions.
func TestKilledUninstall(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t), cluster: sandboxes.Acquire(t, testcluster.Whole)}
	install := matrixRow{args: func(*testing.T, *world, *killedRun) []string { return []string{"install"} }}
	w.countKills(t, 50)
	// again installs Flux, and returns the next uninstallation.
	again := func(t *testing.T, id string) *killedRun {
		v := w.newKilledRun(t, install, id)
		if out, _, err := v.run(0, false, 0); err != nil {
			t.Fatalf("installing: %v\n%s", err, out.text.String())
		}
		v.args = []string{"uninstall", "--silent", "--namespace=" + id}
		return v
	}
	undisturbed := again(t, "uninstall-whole")
	out, _, err := undisturbed.run(0, false, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.text.String())
	}
	want, requests, lines := undisturbed.state()+w.definitions(t), len(undisturbed.killer.counted()), out.lines
	t.Logf("%d requests, %d lines", requests, lines)
	step := 1
	if !tier.Nightly() {
		step = 80
	}
	one := func(id string, request int, late bool, line int) {
		t.Run(id, func(t *testing.T) {
			v := again(t, id)
			out, dead, err := v.run(request, late, line)
			if !dead && err != nil {
				t.Fatalf("the command failed before it was killed: %v\n%s", err, out.text.String())
			}
			if t.Logf("killed: %t", dead); dead {
				w.kills.Add(1)
			}
			// A second run must succeed although some objects are already removed.
			if second, _, err := v.run(0, false, 0); err != nil && dead {
				t.Errorf("after a kill: %v\n%s\nthe first run:\n%s", err, second.text.String(), out.text.String())
			}
			if got := v.state() + w.definitions(t); got != want {
				t.Errorf("after a kill: %s\nwant %s\nthe first run:\n%s", got, want, out.text.String())
			}
		})
	}
	for at := 1; at <= requests; at += step {
		for _, late := range []bool{false, true} {
			one(fmt.Sprintf("uninstall-r%03d-%t", at, late), at, late, 0)
		}
	}
	for at := 1; at <= lines; at += step {
		one(fmt.Sprintf("uninstall-l%03d", at), 0, false, at)
	}
}

// definitions returns the remaining CustomResourceDefinitions of Flux.
func (w *world) definitions(t *testing.T) string {
	t.Helper()
	var names []string
	_, err := w.cluster.Client.List(t.Context(), resource("apiextensions.k8s.io/v1", "CustomResourceDefinition"), kube.Selection{}, func(o controllers.Object) error {
		names = append(names, controllers.Name(o))
		return nil
	})
	check(t, err)
	return fmt.Sprintf("definitions %q", names)
}
