package delete

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// await watches until the deleted objects are gone, over one watch a kind and namespace.
func (d *deletion) await(ctx context.Context, targets []objref.Target) error {
	groups := map[kinds.KindNamespace][]objref.Target{}
	for _, t := range targets {
		p := kinds.KindNamespace{Kind: t.Kind.Kind, Namespace: t.Namespace}
		groups[p] = append(groups[p], t)
	}
	if len(targets) > 0 {
		d.sayWaiting(targets)
	}
	line := d.app.UI.Progress(d.app.Now, "waiting for %s", strings.Join(finalizing(targets), ", "))
	defer line.Done()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for at, group := range groups {
		wg.Go(func() {
			err := d.awaitGroup(ctx, at.Namespace, group)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return failed
}

// finalizing are the names of what is waited for.
func finalizing(targets []objref.Target) []string {
	var names []string
	for _, t := range targets {
		names = append(names, t.Named().String())
	}
	return names
}

func (d *deletion) sayWaiting(targets []objref.Target) {
	if len(targets) == 1 {
		d.app.UI.Waiting("waiting until %s is gone", targets[0])
		return
	}
	d.app.UI.Waiting("waiting until %s are gone", kinds.Count(targets))
}

// awaitGroup waits for objects of a kind in one namespace. An object of the same
// name that is not being deleted is another one, which somebody has created since.
func (d *deletion) awaitGroup(ctx context.Context, namespace string, group []objref.Target) error {
	wanted := map[string]objref.Target{}
	for _, t := range group {
		wanted[t.Name] = t
	}
	selection := kube.Selection{Namespace: namespace}
	if len(group) == 1 {
		selection.Name = group[0].Name
	}
	anew := map[string]controllers.Object{}
	var left []controllers.Object
	err := d.client.WithServedVersion(ctx, group[0].Kind, func(r kube.Resource) (err error) {
		left, err = d.client.WaitDeleted(ctx, r, selection, func(o controllers.Object) bool {
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

func (d *deletion) sayGone(group []objref.Target, left []controllers.Object, anew map[string]controllers.Object, err error) error {
	still := map[string]controllers.Object{}
	for _, o := range left {
		still[controllers.Name(o)] = o
	}
	if err != nil && len(left) == 0 {
		for _, t := range group {
			d.results.Set(t, report.ResultFailed, err)
			if d.user.Err() != nil {
				d.app.UI.Warning("%s: its deletion continues in the cluster", t.Named())
			}
		}
		return err
	}
	for _, t := range group {
		switch o, there := still[t.Name]; {
		case there && errors.Is(err, context.DeadlineExceeded):
			late := clierr.WithHint(fmt.Sprintf("check that %s runs: flux check", t.Kind.Controller),
				"%s", report.TimedOut(d.app, t.Named(), "be deleted", "it waits for "+report.Finalizers(o)))
			d.results.Set(t, report.ResultFailed, late)
			d.app.Report(late)
		case there && d.user.Err() != nil:
			d.results.Set(t, report.ResultFailed, err)
			d.app.UI.Warning("%s is not deleted yet: its deletion continues in the cluster, waiting for %s", t.Named(), report.Finalizers(o))
		case there:
			d.results.Set(t, report.ResultFailed, err)
			return err
		case anew[t.Name] != nil:
			d.app.UI.Success("%s deleted", report.Label(t, d.many))
			d.app.UI.Warning("%s exists again: it was recreated%s", t, maker(anew[t.Name]))
		default:
			d.app.UI.Success("%s is gone", report.Label(t, d.many))
		}
	}
	if len(still) > 0 && d.user.Err() != nil {
		return err
	}
	if len(still) > 0 {
		return clierr.ErrReported
	}
	return nil
}

// maker names the Kustomization whose inventory an object is in.
func maker(o controllers.Object) string {
	name, namespace := kube.Label(o, "kustomize.toolkit.fluxcd.io/name"), kube.Label(o, "kustomize.toolkit.fluxcd.io/namespace")
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; Kustomization %s/%s applies it", namespace, name)
}
