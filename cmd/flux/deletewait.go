package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// await watches until the deleted objects are gone, over one watch a kind and namespace.
func (d *deletion) await(ctx context.Context, targets []target) error {
	groups := map[place][]target{}
	for _, t := range targets {
		p := place{t.kind.Kind, t.namespace}
		groups[p] = append(groups[p], t)
	}
	if len(targets) > 0 {
		d.sayWaiting(targets)
	}
	line := d.app.ui.Progress(d.app.now, "waiting for %s", strings.Join(finalizing(targets), ", "))
	defer line.Done()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for at, group := range groups {
		wg.Go(func() {
			err := d.awaitGroup(ctx, at.namespace, group)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return failed
}

// finalizing are the names of what is waited for.
func finalizing(targets []target) []string {
	var names []string
	for _, t := range targets {
		names = append(names, t.named().String())
	}
	return names
}

func (d *deletion) sayWaiting(targets []target) {
	if len(targets) == 1 {
		d.app.ui.Waiting("waiting until %s is gone", targets[0])
		return
	}
	d.app.ui.Waiting("waiting until %s are gone", countTargets(targets))
}

// awaitGroup waits for objects of a kind in one namespace. An object of the same
// name that is not being deleted is another one, which somebody has created since.
func (d *deletion) awaitGroup(ctx context.Context, namespace string, group []target) error {
	wanted := map[string]target{}
	for _, t := range group {
		wanted[t.name] = t
	}
	selection := kube.Selection{Namespace: namespace}
	if len(group) == 1 {
		selection.Name = group[0].name
	}
	anew := map[string]controllers.Object{}
	var left []controllers.Object
	err := d.client.With(ctx, group[0].kind, func(r kube.Resource) (err error) {
		left, err = d.client.Gone(ctx, r, selection, func(o controllers.Object) bool {
			name := controllers.Name(o)
			if _, ok := wanted[name]; !ok {
				return false
			}
			if (controllers.Path{"metadata.deletionTimestamp"}).String(o) == "" {
				anew[name] = o
				return false
			}
			delete(anew, name)
			return true
		})
		return err
	})
	return d.sayGone(group, left, anew, err)
}

func (d *deletion) sayGone(group []target, left []controllers.Object, anew map[string]controllers.Object, err error) error {
	still := map[string]controllers.Object{}
	for _, o := range left {
		still[controllers.Name(o)] = o
	}
	if err != nil && len(left) == 0 {
		for _, t := range group {
			d.results.set(t, resultFailed, err)
			if d.user.Err() != nil {
				d.app.ui.Warning("%s: its deletion continues in the cluster", t.named())
			}
		}
		return err
	}
	for _, t := range group {
		switch o, there := still[t.name]; {
		case there && errors.Is(err, context.DeadlineExceeded):
			late := hinted(fmt.Sprintf("check that %s runs: flux check", t.kind.Controller),
				"%s", d.app.timedOut(t.named(), "be deleted", "it waits for "+finalizers(o)))
			d.results.set(t, resultFailed, late)
			d.app.report(late)
		case there && d.user.Err() != nil:
			d.results.set(t, resultFailed, err)
			d.app.ui.Warning("%s is not deleted yet: its deletion continues in the cluster, waiting for %s", t.named(), finalizers(o))
		case there:
			d.results.set(t, resultFailed, err)
			return err
		case anew[t.name] != nil:
			d.app.ui.Success("%s deleted", shown(t, d.many))
			d.app.ui.Warning("%s exists again: it was recreated%s", t, maker(anew[t.name]))
		default:
			d.app.ui.Success("%s is gone", shown(t, d.many))
		}
	}
	if len(still) > 0 && d.user.Err() != nil {
		return err
	}
	if len(still) > 0 {
		return errReported
	}
	return nil
}

func finalizers(o controllers.Object) string {
	list := kube.Finalizers(o)
	if len(list) == 0 {
		return "what it owns"
	}
	return strings.Join(list, ", ")
}

// maker names the Kustomization whose inventory an object is in.
func maker(o controllers.Object) string {
	name, namespace := kube.Label(o, "kustomize.toolkit.fluxcd.io/name"), kube.Label(o, "kustomize.toolkit.fluxcd.io/namespace")
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; Kustomization %s/%s applies it", namespace, name)
}
