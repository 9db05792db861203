package script_test

import (
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// lineKey is the key of a script's line to the cluster.
type lineKey struct{}

// lineHolder lets a command of a script keep its line for the next.
type lineHolder struct{ line *testcluster.Line }

// overLine sends the following commands over a line that can be cut, and that
// may delay every byte: line [DELAY]
func overLine(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: line [DELAY]")
	}
	var delay time.Duration
	if len(args) == 1 {
		var err error
		delay, err = time.ParseDuration(args[0])
		ts.Check(err)
	}
	line, err := testcluster.NewLine(cluster, delay)
	ts.Check(err)
	ts.Defer(func() { ts.Check(line.Close()) })
	ts.Value(lineKey{}).(*lineHolder).line = line
	ts.Setenv("KUBECONFIG", line.Kubeconfig)
}

// cutLine ends all connections and refuses new ones: cut
func cutLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: cut")
	}
	ts.Check(ts.Value(lineKey{}).(*lineHolder).line.Cut())
}

// restoreLine makes the line accept connections again: restore
func restoreLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: restore")
	}
	ts.Check(ts.Value(lineKey{}).(*lineHolder).line.Restore())
}
