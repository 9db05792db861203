package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// reportFailure logs the objects that are not ready in the namespace of a failed test, and the last log lines of the
// controllers about it.
func reportFailure(f *fixture) {
	f.t.Cleanup(func() {
		if !f.t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the context of the test is canceled
		defer cancel()
		unready := map[string]controllers.Object{}
		for _, k := range controllers.Kinds {
			_, err := f.cluster.Client.List(ctx, kube.Of(k), kube.Selection{Namespace: f.namespace}, func(o controllers.Object) error {
				if !k.IsReady(o) {
					unready[named(o)] = o
				}
				return nil
			})
			if err != nil && !kube.NotServed(err) {
				f.t.Logf("listing %s: %v", k.Kind, err)
			}
		}
		f.t.Logf("not ready in %s:\n%s\n%s", f.namespace, describe(unready), lastLogs(f.t, f.cluster, f.namespace))
	})
}

// describe returns the conditions of objects, and the states of the containers of pods.
func describe(objects map[string]controllers.Object) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		conditions, _ := controllers.Path{"status.conditions"}.Lookup(objects[name])
		data, err := json.Marshal(conditions)
		fmt.Fprintf(&b, "  %s (generation %s): %s\n", name, text(objects[name], "metadata.generation"), data)
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		if containers, found := (controllers.Path{"status.containerStatuses"}).Lookup(objects[name]); found {
			fmt.Fprintf(&b, "    %v\n", containers)
		}
	}
	return b.String()
}

// podRecord is the sandbox's record of a pod that runs as a process.
type podRecord struct {
	Name    string
	LogFile string
	Ports   map[string]int
}

// podRecords returns the controllers of a sandbox.
func podRecords(t *testing.T, cluster *testcluster.Cluster) []podRecord {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(cluster.Dir, "pods", "*", "pod.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []podRecord
	for _, path := range paths {
		var record podRecord
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &record)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, record)
	}
	return all
}

// lastLogs returns the last lines of each controller about objects of a namespace, or all its last lines about
// flux-system, and the last lines of its previous process.
func lastLogs(t *testing.T, cluster *testcluster.Cluster, namespace string) string {
	t.Helper()
	const most = 8
	var b strings.Builder
	for _, record := range podRecords(t, cluster) {
		content, err := os.ReadFile(record.LogFile)
		if err != nil {
			fmt.Fprintln(&b, err)
			continue
		}
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(content)), "\n"), func(line string) bool {
			return namespace != "flux-system" && !strings.Contains(line, namespace)
		})
		for _, line := range lines[max(0, len(lines)-most):] {
			fmt.Fprintf(&b, "  %s: %.600s\n", record.Name, line)
		}
		for _, previous := range previousLogs(record.LogFile) {
			fmt.Fprintf(&b, "  previous process of %s: %.600s\n", record.Name, previous)
		}
	}
	return b.String()
}

// previousLogs returns the ends of the other logs next to a controller's log. They exist if the controller has
// restarted.
func previousLogs(current string) []string {
	var ends []string
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(current), "*.log"))
	for _, other := range others {
		if content, err := os.ReadFile(other); err == nil && other != current {
			ends = append(ends, string(content[max(0, len(content)-500):]))
		}
	}
	return ends
}
