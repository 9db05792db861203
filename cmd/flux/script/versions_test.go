package script_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/tier"
)

// versions returns the versions of Flux of TestVersions: all in the nightly run, else the oldest and the
// newest.
func versions() []string {
	if tier.Nightly() {
		return []string{"2.0", "2.3", "2.6", "2.9", "2.10"}
	}
	return []string{"2.0", "2.10"}
}

// TestVersions runs each script of testdata/versions on the CRDs of several
// versions of Flux. objects.yaml are objects as that version stores them,
// $VERSION is the version, and $KIND, such as $Alert, the API version that it
// stores a kind in.
func TestVersions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "versions", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	var count atomic.Int32
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			if err := cluster.Serve(t.Context(), version); err != nil {
				t.Fatal(err)
			}
			stored, err := storedVersions(version)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := os.ReadFile(filepath.Join("testdata", "versions", version+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			p := params(t, cluster, files, false, &count)
			setup := p.Setup
			p.Setup = func(env *testscript.Env) error {
				env.Setenv("VERSION", version)
				for kind, apiVersion := range stored {
					env.Setenv(kind, apiVersion)
				}
				if err := os.WriteFile(filepath.Join(env.WorkDir, "objects.yaml"), objects, 0o600); err != nil {
					return err
				}
				return setup(env)
			}
			testscript.RunT(tShim{t, false}, p)
		})
	}
}

// storedVersions returns the API version in which a version of Flux stores each
// of its kinds.
func storedVersions(version string) (map[string]string, error) {
	crds, err := testcluster.CRDs(version)
	if err != nil {
		return nil, err
	}
	stored := map[string]string{}
	for _, crd := range crds {
		field := func(path string) string { return controllers.Path{path}.String(crd.Object) }
		list, _ := controllers.Path{"spec.versions"}.Lookup(crd.Object)
		versions, _ := list.([]any)
		for _, item := range versions {
			if v, _ := item.(map[string]any); v["storage"] == true {
				stored[field("spec.names.kind")] = field("spec.group") + "/" + v["name"].(string)
			}
		}
	}
	return stored, nil
}

// upgrade installs the CRDs of a version of Flux: upgrade VERSION keeps the
// objects, and upgrade --new VERSION removes them with their CRDs before.
func upgrade(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	ctx := context.Background()
	switch {
	case neg || len(args) == 0:
		ts.Fatalf("usage: upgrade [--new] VERSION")
	case len(args) == 1:
		ts.Check(cluster.Upgrade(ctx, args[0]))
	default:
		// What stored older versions cannot become current again.
		ts.Defer(func() { ts.Check(cluster.RemoveCRDs(ctx)) })
		ts.Check(cluster.Serve(ctx, args[1]))
	}
}
