package main

import (
	"context"
	"maps"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/logs"
	"github.com/fluxkit/flux/pkg/controllers"
)

// belowAll are the objects below several.
func (a *app) belowAll(ctx context.Context, client *kube.Client, roots []target) (map[string]bool, error) {
	all := map[string]bool{}
	for _, root := range roots {
		found, err := a.below(ctx, client, root)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}

// below are an object and the objects of Flux that it has applied, and those
// that these have, as a filter of logs has them. The objects of a level are
// read at once.
func (a *app) below(ctx context.Context, client *kube.Client, root target) (map[string]bool, error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	known := map[string]bool{keyOf(root): true}
	level := []target{root}
	for len(level) > 0 {
		children, err := a.children(ctx, client, root, level)
		if err != nil {
			return nil, err
		}
		level = nil
		for _, t := range children {
			if known[keyOf(t)] {
				continue
			}
			known[keyOf(t)] = true
			if t.kind.Has(controllers.Tree) {
				level = append(level, t)
			}
		}
	}
	return known, nil
}

func keyOf(t target) string { return logs.Key(t.kind.Kind, t.namespace, t.name) }

func (a *app) children(ctx context.Context, client *kube.Client, root target, level []target) ([]target, error) {
	found := make([][]target, len(level))
	failures := make([]error, len(level))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range level {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t := level[i]
			if failures[i] = t.read(ctx, client); failures[i] == nil {
				found[i] = childrenOf(t)
			}
		})
	}
	wg.Wait()
	var all []target
	for i, err := range failures {
		switch {
		case err == nil:
			all = append(all, found[i]...)
		case level[i].key() == root.key() && !apierrors.IsForbidden(err), ctx.Err() != nil:
			return nil, err
		default:
			message, _ := explain(err, nil)
			a.ui.Warning("what is below %s is left out: %s", level[i], message)
		}
	}
	return all, nil
}

// childrenOf are the objects of Flux that an object has applied or had made.
func childrenOf(t target) []target {
	targets := t.kind.Managed(t.object)
	for _, chart := range t.kind.Upstream(t.object) {
		if t.kind.Kind == "HelmRelease" && chart.Kind == "HelmChart" {
			targets = append(targets, chart)
		}
	}
	var children []target
	for _, managed := range targets {
		group, _, _ := strings.Cut(managed.APIVersion, "/")
		k, ok := controllers.FindKind(managed.Kind)
		if ok && (managed.APIVersion == "" || group == k.Group) {
			children = append(children, target{kind: k, namespace: managed.Namespace, name: managed.Name})
		}
	}
	return children
}
