package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The annotations by which a reconciliation is asked for (fluxcd/pkg/apis/meta and the helm-controller's API).
const (
	requestAnnotation = "reconcile.fluxcd.io/requestedAt"
	forceAnnotation   = "reconcile.fluxcd.io/forceAt"
	resetAnnotation   = "reconcile.fluxcd.io/resetAt"
)

type reconcileOptions struct {
	targets                  targetOptions
	withSource, force, reset bool
}

func newReconcile(a *app) *cobra.Command {
	o := &reconcileOptions{}
	return a.multiply(verb{
		name: "reconcile", applies: controllers.Reconcile,
		short: "Reconcile objects now and wait for the outcome",
		of:    "Reconcile %s objects now and wait for the outcome",
		example: `  # Reconcile one and wait until it is done
  flux reconcile %[1]s my-app

  # Reconcile all of a namespace
  flux reconcile %[1]s --all -n apps

  # Give it more time than the default five minutes
  flux reconcile %[1]s my-app --timeout 10m`,
		flags:     func(fs *pflag.FlagSet) { o.targets.add(fs, "reconcile") },
		kindFlags: o.add,
		run: func(cmd *cobra.Command, k controllers.Kind, names []string) error {
			return a.reconcile(cmd, o, k, names)
		},
	})
}

func (o *reconcileOptions) add(k controllers.Kind, fs *pflag.FlagSet) {
	switch k.Kind {
	case "HelmRelease":
		fs.BoolVar(&o.force, "force", false, "install or upgrade the release even where nothing has changed")
		fs.BoolVar(&o.reset, "reset", false, "forget earlier failures, so that an exhausted release is tried again")
		fallthrough
	case "Kustomization", "HelmChart", "GitRepository":
		fs.BoolVar(&o.withSource, "with-source", false, "reconcile what the object takes its content from first")
	}
}

func (a *app) reconcile(cmd *cobra.Command, o *reconcileOptions, k controllers.Kind, names []string) error {
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	targets, err := a.targets(ctx, cmd, &o.targets, k, names)
	if err != nil {
		return err
	}
	r := a.newReconciler(client, *o)
	return a.each(targets, func(t target) error { return r.run(ctx, t) })
}

// reconciler asks controllers to reconcile and watches for their answer.
type reconciler struct {
	app     *app
	client  *kube.Client
	token   string
	options reconcileOptions
}

func (a *app) newReconciler(client *kube.Client, o reconcileOptions) reconciler {
	return reconciler{app: a, client: client, token: a.now().Format(time.RFC3339Nano), options: o}
}

func (r reconciler) run(ctx context.Context, t target) error {
	if r.options.withSource && t.kind.Source != nil {
		if err := r.sources(ctx, t); err != nil {
			return err
		}
	}
	return r.one(ctx, t, r.options)
}

// sources reconciles what an object takes its content from, farthest first.
func (r reconciler) sources(ctx context.Context, t target) error {
	var object controllers.Object
	err := r.client.With(ctx, t.kind, func(res kube.Resource) (err error) {
		object, err = r.client.Get(ctx, res, t.namespace, t.name)
		return err
	})
	if err != nil {
		return missing(err, t)
	}
	for _, ref := range t.kind.SourceOf(object) {
		k, ok := controllers.FindKind(ref.Kind)
		if !ok {
			return fmt.Errorf("%s refers to a source of unknown kind %q", t, ref.Kind)
		}
		source := target{kind: k, namespace: ref.Namespace, name: ref.Name}
		if k.Source != nil {
			if err := r.sources(ctx, source); err != nil {
				return err
			}
		}
		if k.Has(controllers.Reconcile) {
			if err := r.one(ctx, source, reconcileOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r reconciler) one(ctx context.Context, t target, o reconcileOptions) error {
	r.app.ui.Action("annotating %s %s in %s namespace", t.kind.Kind, t.name, t.namespace)
	patched, res, err := r.ask(ctx, t, map[string]any{}, o)
	if err != nil {
		return err
	}
	if t.kind.Suspension.Is(patched) {
		return hinted(fmt.Sprintf("flux resume %s %s -n %s", t.kind.Noun(), t.name, t.namespace), "%s is suspended", t)
	}
	r.app.ui.Success("%s annotated", t.kind.Kind)
	return r.await(ctx, t, res, patched)
}

// ask sends one patch that asks for a reconciliation, together with change.
func (r reconciler) ask(ctx context.Context, t target, change map[string]any, o reconcileOptions) (patched controllers.Object, res kube.Resource, err error) {
	annotations := map[string]any{requestAnnotation: r.token}
	if o.force {
		annotations[forceAnnotation] = r.token
	}
	if o.reset {
		annotations[resetAnnotation] = r.token
	}
	change["metadata"] = map[string]any{"annotations": annotations}
	err = r.client.With(ctx, t.kind, func(served kube.Resource) error {
		res = served
		patched, err = r.client.Merge(ctx, res, t.namespace, t.name, change)
		return err
	})
	return patched, res, missing(err, t)
}

// await watches from the patch's version on until the controller has answered
// it, so that nothing is missed and nothing is asked twice.
func (r reconciler) await(ctx context.Context, t target, res kube.Resource, patched controllers.Object) error {
	if t.kind.Static != nil && t.kind.Static(patched) {
		r.app.ui.Success("reconciliation not supported by the object")
		return nil
	}
	r.app.ui.Waiting("waiting for %s reconciliation", t.kind.Kind)
	last := patched
	version := controllers.Path{"metadata.resourceVersion"}.String(patched)
	err := r.client.Follow(ctx, res, kube.Selection{Namespace: t.namespace, Name: t.name}, version, func(e kube.Event) (bool, error) {
		if e.Deleted {
			return false, fmt.Errorf("%s was deleted while it was waited for", t)
		}
		last = e.Object
		return t.kind.Settled(last, r.token), nil
	})
	ready := t.kind.Ready(last)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return hinted(fmt.Sprintf("flux logs --kind %s --name %s -n %s", t.kind.Kind, t.name, t.namespace),
			"%s was not reconciled within %s: %s", t, r.app.global.timeout, ready.Message)
	case err != nil:
		return err
	case ready.Status != "True":
		return fmt.Errorf("%s is not ready: %s: %s", t, ready.Reason, ready.Message)
	}
	r.app.ui.Success(t.kind.Done, t.kind.Result.String(last))
	return nil
}
