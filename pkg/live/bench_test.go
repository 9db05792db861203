package live

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkSnapshot evaluates 5,000 objects, of which 100 are not ready.
func BenchmarkSnapshot(b *testing.B) {
	var objects []map[string]any
	for i := range 5000 {
		ready, reason := "True", "ReconciliationSucceeded"
		if i%50 == 0 {
			ready, reason = "False", "BuildFailed"
		}
		o := object("Kustomization", fmt.Sprint("app-", i), ready, reason, "Applied revision: main@sha1:6f74937627a81eaa0abbecf3de43dd9fc926c04e", time.Hour, from("GitRepository", "fleet"))
		objects = append(objects, o)
	}
	c := clusterOf(append(objects, object("GitRepository", "fleet", "True", "Succeeded", "stored artifact", time.Hour, nil))...)
	b.ReportAllocs()
	for b.Loop() {
		c.Snapshot()
	}
}
