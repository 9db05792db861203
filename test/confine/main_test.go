//go:build linux

// Package confine_test runs hostile repositories with the real controllers, and checks that they cannot run
// programs, connect to servers or change files outside of their sandbox.
package confine_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/examine"
	"github.com/fluxkit/flux/pkg/testrun/sources"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/testtemp"
)

var sandboxes = testcluster.NewPool()

func TestMain(m *testing.M) { os.Exit(testtemp.M{Tests: sandboxes.Around(m)}.Run()) }

// cluster is the cluster's directory in the repositories.
const cluster = "clusters/demo"

// withSync returns the files of a repository, including the files that bootstrap writes.
func withSync(files map[string]string) map[string]string {
	all := map[string]string{
		cluster + "/flux-system/gotk-components.yaml": "# Flux Version: v" + controllers.DefaultDistribution().Version +
			"\n# Components: source-controller,kustomize-controller,helm-controller,notification-controller,image-reflector-controller\n",
		cluster + "/flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m0s, url: "https://repository.example/fleet", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m0s, path: ./clusters/demo, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`,
	}
	maps.Copy(all, files)
	return all
}

// start runs a repository until its controllers have started.
func start(t *testing.T, files map[string]string, allowNetwork bool) *testrun.Run {
	t.Helper()
	run, ctx := prepare(t, files, allowNetwork)
	if err := run.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return run
}

// prepare returns a run of a repository that is not started, and the context that bounds it.
func prepare(t *testing.T, files map[string]string, allowNetwork bool) (*testrun.Run, context.Context) {
	t.Helper()
	tree := fstest.MapFS{}
	for name, content := range withSync(files) {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	sandboxes.Acquire(t, testcluster.Started)
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	t.Cleanup(cancel)
	repository := &sources.Repository{Tree: tree, Path: cluster}
	if err := repository.Load(ctx); err != nil {
		t.Fatal(err)
	}
	run := &testrun.Run{
		Program: filepath.Join(testcluster.Bin(), helper.Sandbox), Distribution: controllers.DefaultDistribution(), Repository: repository,
		AllowNetwork: allowNetwork, Now: time.Now, Progress: func(string) {},
	}
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	})
	return run, ctx
}

// reconcile runs a repository until its controllers have finished, and returns the run before it is closed.
func reconcile(t *testing.T, files map[string]string, allowNetwork bool) (*testrun.Run, *examine.Report) {
	t.Helper()
	run := start(t, files, allowNetwork)
	ctx, cancel := context.WithTimeout(t.Context(), testlimit.Wait)
	defer cancel()
	// The repository may have changed the controllers.
	waiter := &rollout.Waiter{Client: run.Sandbox.Client, Namespace: run.Set.Namespace, Names: run.Repository.Components}
	for _, step := range []func(context.Context) error{waiter.Wait, run.Settle, run.Read} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	report, err := examine.Run(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	return run, report
}

// causes returns the messages of the root causes by object.
func causes(report *examine.Report) map[string]string {
	messages := map[string]string{}
	for _, c := range report.Causes {
		messages[c.Object.Kind+"/"+c.Object.Name] = c.Message
	}
	return messages
}

// fluxWithSandbox returns the path of flux in a directory with the sandbox binaries.
func fluxWithSandbox(t *testing.T) string {
	t.Helper()
	sandboxes.Acquire(t, testcluster.Started)
	return filepath.Join(testcluster.Programs(t), "flux")
}

// writeRepository writes the files of a repository to a directory.
func writeRepository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range withSync(files) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// missing fails if one of the paths exists.
func missing(t *testing.T, paths ...string) {
	t.Helper()
	if i := slices.IndexFunc(paths, func(p string) bool { _, err := os.Stat(p); return err == nil }); i >= 0 {
		t.Errorf("%s exists", paths[i])
	}
}
