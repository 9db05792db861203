package main

import (
	"context"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/internal/testcluster"
	"github.com/fluxkit/flux/pkg/controllers"
)

// outdate makes the cluster serve only older versions until the script ends:
// the ones before the shipped ones, or the oldest: outdate last|oldest
func outdate(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "last" && args[0] != "oldest" {
		ts.Fatalf("usage: outdate last|oldest")
	}
	ctx := context.Background()
	// What stored older versions cannot become current again.
	ts.Defer(func() { ts.Check(cluster.RemoveCRDs(ctx)) })
	ts.Check(cluster.ServeOlder(ctx, func(k controllers.Kind) string {
		switch {
		case len(k.Older) == 0:
			return ""
		case args[0] == "last":
			return k.Older[0]
		default:
			return k.Older[len(k.Older)-1]
		}
	}))
}
