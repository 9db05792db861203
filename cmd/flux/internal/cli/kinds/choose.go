package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// choose sets the targets: the named objects, or the objects that the options select.
func (act *Act) choose(ctx context.Context, cmd *cobra.Command) (err error) {
	if act.Namespace, err = act.App.Namespace(cmd); err != nil {
		return err
	}
	act.Listed = act.Options.selects()
	switch {
	case !act.Listed:
		act.Targets = act.Selection.In(act.Namespace)
	case act.Options.AllNamespaces:
		act.Namespace = ""
	}
	if act.Listed && !act.Unlisted {
		err = act.ListKinds(ctx, func(_ int, k controllers.Kind) List {
			return ListTargets(ctx, act.Client, k, kube.Selection{Namespace: act.Namespace, Labels: act.Options.Labels})
		})
		if err == nil && len(act.Targets) == 0 && !act.MayBeEmpty {
			err = act.NoneFound()
		}
	}
	act.results = report.NewResults(act.Targets)
	return err
}

// NoneFound returns the error for an empty selection.
func (act *Act) NoneFound() error {
	if act.Incomplete != nil {
		return act.Incomplete
	}
	return fmt.Errorf("no %s", None(act.Selection.Noun(), "", act.Namespace, 0))
}

// List is the result of listing a kind in a namespace, "" for all namespaces.
type List struct {
	Kind      controllers.Kind
	Namespace string
	// version is the resource version of the list, from which a watch starts.
	version string
	Targets []objref.Target
	Err     error
}

// ListKinds lists the objects of the selected kinds concurrently. It reports kinds that cannot be
// listed and sets Incomplete.
func (act *Act) ListKinds(ctx context.Context, read func(index int, k controllers.Kind) List) error {
	act.Lists = make([]List, len(act.Selection.Kinds))
	var wg sync.WaitGroup
	for i, k := range act.Selection.Kinds {
		wg.Go(func() { act.Lists[i] = read(i, k) })
	}
	wg.Wait()
	var errs []error
	absent := 0
	for _, l := range act.Lists {
		var missing *kube.MissingKindError
		switch {
		case l.Err == nil:
			act.Targets = append(act.Targets, l.Targets...)
		case act.Selection.Every && errors.As(l.Err, &missing):
			absent++
		case ctx.Err() != nil || clierr.Unreachable(l.Err) || !act.Selection.Several():
			return l.Err
		default:
			errs = append(errs, l.Err)
		}
	}
	if app.ReportLists(act.App, errs); len(errs) > 0 {
		act.Incomplete = clierr.ErrReported
	}
	if absent == len(act.Lists) {
		return NotServed(act.Selection.Kinds)
	}
	act.Lists = slices.DeleteFunc(act.Lists, func(l List) bool { return l.Err != nil })
	return nil
}

// ListTargets lists the objects of a kind as targets.
func ListTargets(ctx context.Context, client *kube.Client, k controllers.Kind, selected kube.Selection) List {
	l := List{Kind: k, Namespace: selected.Namespace}
	l.Err = client.WithServedVersion(ctx, k, func(r kube.Resource) (err error) {
		l.Targets = nil
		l.version, err = client.List(ctx, r, selected, func(o controllers.Object) error {
			l.Targets = append(l.Targets, objref.Target{Kind: k, Namespace: controllers.Namespace(o), Name: controllers.Name(o), Object: o})
			return nil
		})
		return err
	})
	return l
}

// Share shares one watch of w between the targets of each list that returned several.
func (act *Act) Share(w *reconcile.Watches) {
	count := map[string]int{}
	for _, t := range act.Targets {
		count[t.Kind.CRD()]++
	}
	for _, l := range act.Lists {
		if count[l.Kind.CRD()] > 1 {
			w.Share(l.Kind, l.Namespace, l.version)
		}
	}
}
