package logs

import (
	"context"
	"maps"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/logs"
)

// inventories returns the union of the inventories of roots.
func inventories(ctx context.Context, a *app.App, client *kube.Client, roots []objref.Target) (map[string]bool, error) {
	all := map[string]bool{}
	for _, root := range roots {
		found, err := inventory(ctx, a, client, root)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}

// inventory returns the log filter keys of an object and of the Flux objects
// that it applies, recursively. The objects of a level are read concurrently.
func inventory(ctx context.Context, a *app.App, client *kube.Client, root objref.Target) (map[string]bool, error) {
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	known := map[string]bool{keyOf(root): true}
	level := []objref.Target{root}
	for len(level) > 0 {
		children, err := children(ctx, a, client, root, level)
		if err != nil {
			return nil, err
		}
		level = nil
		for _, t := range children {
			if known[keyOf(t)] {
				continue
			}
			known[keyOf(t)] = true
			if t.Kind.Has(controllers.Tree) {
				level = append(level, t)
			}
		}
	}
	return known, nil
}

func keyOf(t objref.Target) string { return logs.Key(t.Kind.Kind, t.Namespace, t.Name) }

func children(ctx context.Context, a *app.App, client *kube.Client, root objref.Target, level []objref.Target) ([]objref.Target, error) {
	found := make([][]objref.Target, len(level))
	failures := make([]error, len(level))
	var reads errgroup.Group
	reads.SetLimit(app.Concurrency)
	for i, t := range level {
		reads.Go(func() error {
			if failures[i] = t.Read(ctx, client); failures[i] == nil {
				found[i] = childrenOf(t)
			}
			return nil
		})
	}
	_ = reads.Wait() // failures contains the errors
	var all []objref.Target
	for i, err := range failures {
		switch {
		case err == nil:
			all = append(all, found[i]...)
		case level[i].Key() == root.Key() && !apierrors.IsForbidden(err), ctx.Err() != nil:
			return nil, err
		default:
			message, _ := clierr.Explain(err, nil)
			a.UI.Warning("skipping the inventory of %s: %s", level[i], message)
		}
	}
	return all, nil
}

// childrenOf returns the Flux objects that an object has applied or generated.
func childrenOf(t objref.Target) []objref.Target {
	targets := controllers.Managed(t.Object)
	for _, chart := range t.Kind.Upstream(t.Object) {
		if t.Kind.Release && chart.Kind == controllers.ChartKind {
			targets = append(targets, chart)
		}
	}
	var children []objref.Target
	for _, managed := range targets {
		if k, ok := managed.Flux(); ok {
			children = append(children, objref.Target{Kind: k, Namespace: managed.Namespace, Name: managed.Name})
		}
	}
	return children
}
