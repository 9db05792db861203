// Package newkind_test checks that a kind needs one row in the catalog: with the
// row of a kind that does not exist in Flux, all verbs on kinds work.
package newkind_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/klog/v2"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testtemp"
)

// promotion is the row of a made-up kind that applies the objects of a source.
var promotion = controllers.Kind{
	Group: "delivery.toolkit.fluxcd.io", Version: "v1", Kind: "Promotion", Resource: "promotions",
	Controller: "delivery-controller", Word: "promotion", Plural: "promotions", Short: "promo",
	Verbs:      controllers.Get | controllers.Export | controllers.Suspend | controllers.Resume | controllers.Reconcile | controllers.Delete | controllers.Tree,
	Columns:    []controllers.Column{{Header: "STAGE", Field: controllers.Path{"spec.stage"}}},
	Suspension: controllers.Suspension{Field: controllers.Path{"spec.suspend"}},
	Done:       "promoted revision %s", Result: controllers.Path{"status.lastAppliedRevision"},
	Inventory: controllers.Path{"status.inventory.entries[]"}, Manager: "delivery-controller",
	Source: &controllers.Ref{Relation: "source", Path: controllers.Path{"spec.sourceRef"}, Kinds: []string{"GitRepository"}},
	Refs: []controllers.Ref{{
		Relation: "dependency", Path: controllers.Path{"spec.dependsOn[]"}, Kinds: []string{"Promotion"}, CrossNamespace: true,
	}},
}

// TestMain adds the row to the catalog, both of the tests and of flux, which the
// scripts run as this test program.
var sandboxes = testcluster.NewPool()

func TestMain(m *testing.M) {
	controllers.Kinds = append(controllers.Kinds, promotion)
	controllers.Known = append(controllers.Known, promotion)
	testscript.Main(testtemp.M{Tests: sandboxes.Around(m)}, map[string]func(){"flux": func() { os.Exit(runFlux()) }})
}

func runFlux() int {
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := app.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv, time.Now)
	a.LookupEnv, a.Environ = os.LookupEnv, os.Environ
	return root.Run(ctx, a, os.Args[1:])
}

// TestNewKind runs the script of the kind.
func TestNewKind(t *testing.T) {
	t.Parallel()
	cluster := sandboxes.Acquire(t, testcluster.API)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBECONFIG", cluster.Kubeconfig)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("FLUX_SYSTEM_NAMESPACE", "apps")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"seed": func(ts *testscript.TestScript, _ bool, files []string) {
				for _, name := range files {
					ts.Check(cluster.Seed(context.Background(), []byte(ts.ReadFile(name)), "apps"))
				}
			},
			"answer": func(ts *testscript.TestScript, _ bool, args []string) { answer(ts, cluster, args[0]) },
		},
	})
}

// answer answers requests to reconcile an object until the script ends.
func answer(ts *testscript.TestScript, cluster *testcluster.Cluster, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	ready := controllers.Condition{Status: "True", Reason: "Promoted", Message: "promoted"}
	go func() { done <- cluster.Answer(ctx, promotion, "apps", name, ready) }()
	ts.Defer(func() {
		cancel()
		ts.Check(<-done)
	})
}
