package live

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/test/support/fakeapi"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// clock is the time of the tests.
func clock() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }

// object returns an object with a Ready condition that has changed some time ago, or without status for an empty one.
func object(kind, name, ready, reason, message string, ago time.Duration, spec map[string]any) controllers.Object {
	k, _ := controllers.FindKind(kind)
	at := clock().Add(-ago).Format(time.RFC3339)
	o := controllers.Object{
		"apiVersion": k.APIVersion(), "kind": kind, "spec": spec,
		"metadata": map[string]any{"namespace": "apps", "name": name, "generation": int64(1), "creationTimestamp": at},
	}
	if ready != "" {
		o["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "reason": reason, "message": message, "observedGeneration": int64(1), "lastTransitionTime": at,
		}}}
	}
	return o
}

func from(kind, name string) map[string]any {
	return map[string]any{"sourceRef": map[string]any{"kind": kind, "name": name}}
}

// clusterOf returns a cluster with objects.
func clusterOf(objects ...controllers.Object) *Cluster {
	c := New("", diagnose.Diagnoser{Home: "flux-system"}, nil, clock)
	for _, f := range c.feeds {
		var own []controllers.Object
		for _, o := range objects {
			if controllers.IDOf(o).Kind == f.Kind.Kind {
				own = append(own, o)
			}
		}
		c.put(f, own, nil)
	}
	return c
}

// summary returns the state, the object and the root cause of each row.
func summary(s Snapshot) []string {
	var lines []string
	for _, row := range s.Rows {
		line := fmt.Sprintf("%s %s", row.State, row.ID)
		if row.Root != row.ID && row.Root.Name != "" {
			line += " < " + row.Root.String()
		}
		lines = append(lines, line)
	}
	return lines
}

// TestGroups checks the order of the rows: root causes that block the most objects first, each followed by what it blocks.
func TestGroups(t *testing.T) {
	t.Parallel()
	paused := object("Kustomization", "paused", "False", "BuildFailed", "failed before", time.Hour, from("GitRepository", "good"))
	paused["spec"].(map[string]any)["suspend"] = true
	stale := object("Kustomization", "stale", "True", "ReconciliationSucceeded", "Applied revision", time.Hour, from("GitRepository", "good"))
	stale["metadata"].(map[string]any)["generation"] = int64(2)
	stale["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "kubectl", "time": clock().Add(-10 * time.Second).Format(time.RFC3339)}}
	late := object("Kustomization", "late", "", "", "", time.Hour, from("GitRepository", "good"))
	s := clusterOf(
		object("GitRepository", "good", "True", "Succeeded", "stored artifact", time.Hour, nil),
		object("GitRepository", "bad", "False", "GitOperationFailed", "failed to checkout and determine revision: authentication required", time.Hour, nil),
		object("Kustomization", "one", "False", "ArtifactFailed", "Source artifact not found, retrying in 30s", time.Hour, from("GitRepository", "bad")),
		object("Kustomization", "two", "False", "DependencyNotReady", "dependency 'apps/one' is not ready", time.Hour,
			map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "good"}, "dependsOn": []any{map[string]any{"name": "one"}}}),
		object("Kustomization", "alone", "False", "BuildFailed", "kustomize build failed", time.Hour, from("GitRepository", "good")),
		object("Kustomization", "lost", "False", "SourceNotFound", "GitRepository.source.toolkit.fluxcd.io \"none\" not found", time.Hour, from("GitRepository", "none")),
		object("Kustomization", "busy", "Unknown", "Progressing", "Reconciliation in progress", 10*time.Second, from("GitRepository", "good")),
		object("Kustomization", "fine", "True", "ReconciliationSucceeded", "Applied revision", time.Hour, from("GitRepository", "good")),
		paused, stale, late,
	).Snapshot()
	want := []string{
		"Failed GitRepository/apps/bad",
		"Waiting Kustomization/apps/one < GitRepository/apps/bad",
		"Waiting Kustomization/apps/two < GitRepository/apps/bad",
		"Failed GitRepository/apps/none",
		"Waiting Kustomization/apps/lost < GitRepository/apps/none",
		"Failed Kustomization/apps/alone",
		"Failed Kustomization/apps/late",
		"Reconciling Kustomization/apps/busy",
		"Reconciling Kustomization/apps/stale",
		"Suspended Kustomization/apps/paused",
		"Ready GitRepository/apps/good",
		"Ready Kustomization/apps/fine",
	}
	if diff := cmp.Diff(want, summary(s)); diff != "" {
		t.Error(diff)
	}
	if s.Counts[Failed] != 4 || s.Counts[Ready] != 2 || len(s.Rows[0].Fixes) == 0 || s.Rows[0].Blocks != 2 {
		t.Errorf("%v %+v", s.Counts, s.Rows[0])
	}
}

// TestForbidden checks that a kind that may not be listed is named, and that its objects are not reported as missing.
func TestForbidden(t *testing.T) {
	t.Parallel()
	c := clusterOf(object("Kustomization", "app", "False", "SourceNotReady", "Source artifact not found", time.Hour, from("GitRepository", "hidden")))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "gitrepositories"}, "", nil)
	for _, f := range c.feeds {
		if f.Kind.Kind == "GitRepository" {
			c.put(f, nil, forbidden)
		}
	}
	s := c.Snapshot()
	if diff := cmp.Diff([]string{"no permission to list in all namespaces: GitRepository"}, s.Unknown()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Failed Kustomization/apps/app"}, summary(s)); diff != "" {
		t.Error(diff)
	}
	// Without the kind in the cluster, nothing is unknown, and the source is missing.
	for _, f := range c.feeds {
		if f.Kind.Kind == "GitRepository" {
			c.put(f, nil, &kube.MissingKindError{Kind: f.Kind})
		}
	}
	if s = c.Snapshot(); len(s.Unknown()) > 0 || s.Rows[0].ID.Kind != "GitRepository" {
		t.Errorf("%v %v", s.Unknown(), summary(s))
	}
}

// TestLostConnection checks that the objects of a kind stay after its connection is lost, and that it is not reported as current.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	c := clusterOf(object("Kustomization", "app", "True", "Succeeded", "done", time.Hour, nil))
	for _, f := range c.feeds {
		if f.Kind.Kind != controllers.Kustomization {
			continue
		}
		c.connect(f, false)
		if f.Access != Lost || len(c.Snapshot().Rows) != 1 {
			t.Errorf("%s %v", f.Access, summary(c.Snapshot()))
		}
		c.put(f, nil, context.DeadlineExceeded)
		if f.Access != Lost || len(f.rows) != 1 {
			t.Errorf("%s %v", f.Access, f.rows)
		}
		c.connect(f, true)
		if f.Access != Current {
			t.Error(f.Access)
		}
	}
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

const kustomizations = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/apps/kustomizations"

// TestRun follows the changes of a cluster.
func TestRun(t *testing.T) {
	t.Parallel()
	server := fakeapi.New(t)
	server.Serve("/apis/apps/v1/namespaces/flux-system/deployments")
	for _, k := range controllers.Known {
		for _, version := range append([]string{k.Version, k.Portable}, k.Older...) {
			server.Serve("/apis/" + k.Group + "/" + version + "/namespaces/apps/" + k.Resource)
		}
	}
	server.Put(definitions, controllers.Object{
		"metadata": map[string]any{"name": "terraforms.infra.contrib.fluxcd.io", "labels": map[string]any{"app.kubernetes.io/part-of": "flux"}},
		"spec": map[string]any{
			"group": "infra.contrib.fluxcd.io", "scope": "Namespaced", "names": map[string]any{"kind": "Terraform", "plural": "terraforms"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"properties": map[string]any{"status": map[string]any{"properties": map[string]any{"conditions": map[string]any{}}}},
			}}}},
		},
	})
	const terraforms = "/apis/infra.contrib.fluxcd.io/v1/namespaces/apps/terraforms"
	server.Serve(terraforms)
	server.Put(kustomizations, object("Kustomization", "one", "True", "Succeeded", "done", time.Hour, nil))
	c := New("", diagnose.Diagnoser{Client: server.Client, Home: "flux-system"}, []string{"apps"}, clock)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	c.Run(ctx, running.Go)
	defer running.Wait()
	defer cancel()
	await(t, c, "Ready Kustomization/apps/one")
	server.Put(kustomizations, object("Kustomization", "two", "False", "BuildFailed", "kustomize build failed", time.Hour, nil))
	await(t, c, "Failed Kustomization/apps/two, Ready Kustomization/apps/one")
	server.Take(kustomizations, "one")
	await(t, c, "Failed Kustomization/apps/two")
	network := object("Kustomization", "network", "True", "Applied", "done", time.Hour, nil)
	network["apiVersion"], network["kind"] = "infra.contrib.fluxcd.io/v1", "Terraform"
	server.Put(terraforms, network)
	await(t, c, "Failed Kustomization/apps/two, Ready Terraform/apps/network")
}

// await waits until all kinds are listed and the cluster has the rows.
func await(t *testing.T, c *Cluster, want string) {
	t.Helper()
	deadline := time.NewTimer(testlimit.Wait)
	defer deadline.Stop()
	for {
		s := c.Snapshot()
		got := strings.Join(summary(s), ", ")
		if got == want && !s.Loading() {
			return
		}
		select {
		case <-c.Changed():
		case <-deadline.C:
			t.Fatalf("the rows are %q, want %q", got, want)
		}
	}
}

// TestMerge checks that objects of several clusters with the same name are different, and that root causes come first.
func TestMerge(t *testing.T) {
	t.Parallel()
	state := func(name, ready string, access Access) Snapshot {
		c := clusterOf(
			object("GitRepository", "app", ready, "Succeeded", "stored artifact", time.Hour, nil),
			object("Kustomization", "app", ready, "ArtifactFailed", "Source artifact not found, retrying in 30s", time.Hour, from("GitRepository", "app")),
		)
		c.Name = name
		c.set(c.feeds[0], access, errListed)
		return c.Snapshot()
	}
	s := Merge([]Snapshot{state("a", "True", Unread), state("b", "False", Current), state("c", "False", Current)})
	var got []string
	for _, row := range s.Rows {
		got = append(got, string(row.State)+" "+row.Key.String())
	}
	want := []string{
		"Failed b: GitRepository/apps/app", "Waiting b: Kustomization/apps/app",
		"Failed c: GitRepository/apps/app", "Waiting c: Kustomization/apps/app",
		"Ready a: GitRepository/apps/app", "Ready a: Kustomization/apps/app",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[State]int{Failed: 2, Waiting: 2, Ready: 2}, s.Counts); diff != "" {
		t.Error(diff)
	}
	if unknown := s.Unknown(); len(unknown) != 1 || !strings.HasPrefix(unknown[0], "a: listed") {
		t.Errorf("unknown: %q", unknown)
	}
}

// TestUnextended checks that kinds of other projects are unknown if CRDs cannot be listed, unless only namespaces are read.
func TestUnextended(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "", nil)
	c := clusterOf()
	c.unextended = forbidden
	if diff := cmp.Diff([]string{"no permission to list CustomResourceDefinitions: kinds of other projects"}, c.Snapshot().Unknown()); diff != "" {
		t.Error(diff)
	}
	c.unextended = errListed
	if diff := cmp.Diff([]string{"kinds of other projects: listed"}, c.Snapshot().Unknown()); diff != "" {
		t.Error(diff)
	}
	c.Namespaces, c.unextended = []string{"apps"}, forbidden
	if unknown := c.Snapshot().Unknown(); len(unknown) > 0 {
		t.Error(unknown)
	}
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	terraform := controllers.Kind{Group: "infra.contrib.fluxcd.io", Version: "v1alpha2", Kind: "Terraform", Word: "terraform", Resource: "terraforms", Suspension: controllers.Suspension{Field: controllers.Path{"spec.suspend"}}}
	of := func(name, ready string, spec map[string]any) controllers.Object {
		o := object(controllers.Kustomization, name, ready, "Reason", "message", time.Hour, spec)
		o["apiVersion"], o["kind"] = terraform.APIVersion(), terraform.Kind
		return o
	}
	c := New("", diagnose.Diagnoser{Home: "flux-system"}, nil, clock)
	c.put(c.add([]controllers.Kind{terraform})[0], []controllers.Object{
		of("broken", "False", nil), of("fine", "True", nil), of("new", "", nil), of("off", "False", map[string]any{"suspend": true}),
	}, nil)
	want := []string{
		"Failed Terraform/apps/broken", "Reconciling Terraform/apps/new", "Suspended Terraform/apps/off", "Ready Terraform/apps/fine",
	}
	if diff := cmp.Diff(want, summary(c.Snapshot())); diff != "" {
		t.Errorf("summary of the rows (-want +got):\n%s", diff)
	}
}
