package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

  # Give it more time than the default five minutes
  flux reconcile %[1]s my-app --timeout 10m`,
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
	if len(names) == 0 {
		return hinted(fmt.Sprintf("flux %s NAME", cmd.CommandPath()[len("flux "):]), "%s name is required", k.Kind)
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	namespace, err := a.namespace(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	var failed error
	for _, name := range names {
		r := reconciler{app: a, client: client, token: a.now().Format(time.RFC3339Nano), options: *o}
		if err := r.run(ctx, k, namespace, name); err != nil {
			if len(names) == 1 || ctx.Err() != nil {
				return err
			}
			a.ui.Failure("%s", err)
			failed = errReported
		}
	}
	return failed
}

// reconciler asks controllers to reconcile and watches for their answer.
type reconciler struct {
	app     *app
	client  *kube.Client
	token   string
	options reconcileOptions
}

func (r reconciler) run(ctx context.Context, k controllers.Kind, namespace, name string) error {
	if r.options.withSource && k.Source != nil {
		if err := r.sources(ctx, k, namespace, name); err != nil {
			return err
		}
	}
	return r.one(ctx, k, namespace, name)
}

// sources reconciles what an object takes its content from, farthest first.
func (r reconciler) sources(ctx context.Context, k controllers.Kind, namespace, name string) error {
	var object controllers.Object
	err := r.client.With(ctx, k, func(res kube.Resource) (err error) {
		object, err = r.client.Get(ctx, res, namespace, name)
		return err
	})
	if err != nil {
		return r.notFound(err, k, namespace, name)
	}
	for _, t := range k.SourceOf(object) {
		source, ok := controllers.FindKind(t.Kind)
		if !ok {
			return fmt.Errorf("%s %s/%s refers to unknown kind %q", k.Kind, namespace, name, t.Kind)
		}
		if source.Source != nil {
			if err := r.sources(ctx, source, t.Namespace, t.Name); err != nil {
				return err
			}
		}
		if source.Has(controllers.Reconcile) {
			if err := (reconciler{r.app, r.client, r.token, reconcileOptions{}}).one(ctx, source, t.Namespace, t.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// one sends one patch and watches from there until the controller has
// answered it: the patch tells the version to start at, so nothing is missed
// and nothing is asked twice.
func (r reconciler) one(ctx context.Context, k controllers.Kind, namespace, name string) error {
	r.app.ui.Action("annotating %s %s in %s namespace", k.Kind, name, namespace)
	return r.client.With(ctx, k, func(res kube.Resource) error {
		object, err := r.client.Annotate(ctx, res, namespace, name, r.annotations())
		if err != nil {
			return r.notFound(err, k, namespace, name)
		}
		if k.Suspension.Is(object) {
			return hinted(fmt.Sprintf("flux resume %s %s -n %s", k.Noun(), name, namespace), "%s %s/%s is suspended", k.Kind, namespace, name)
		}
		r.app.ui.Success("%s annotated", k.Kind)
		if k.Static != nil && k.Static(object) {
			r.app.ui.Success("reconciliation not supported by the object")
			return nil
		}
		r.app.ui.Waiting("waiting for %s reconciliation", k.Kind)
		object, err = r.wait(ctx, k, res, object)
		if err != nil {
			return err
		}
		r.app.ui.Success(k.Done, k.Result.String(object))
		return nil
	})
}

func (r reconciler) annotations() map[string]any {
	set := map[string]any{requestAnnotation: r.token}
	if r.options.force {
		set[forceAnnotation] = r.token
	}
	if r.options.reset {
		set[resetAnnotation] = r.token
	}
	return set
}

func (r reconciler) wait(ctx context.Context, k controllers.Kind, res kube.Resource, patched controllers.Object) (controllers.Object, error) {
	namespace, name := controllers.Namespace(patched), controllers.Name(patched)
	last := patched
	version := controllers.Path{"metadata.resourceVersion"}.String(patched)
	err := r.client.Follow(ctx, res, kube.Selection{Namespace: namespace, Name: name}, version, func(e kube.Event) (bool, error) {
		if e.Deleted {
			return false, fmt.Errorf("%s %s/%s was deleted while it was waited for", k.Kind, namespace, name)
		}
		last = e.Object
		return k.Settled(last, r.token), nil
	})
	ready := k.Ready(last)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, hinted("see the controller's log: flux logs --kind "+k.Kind+" --name "+name,
			"%s %s/%s was not reconciled within %s: %s", k.Kind, namespace, name, r.app.global.timeout, ready.Message)
	}
	if err != nil {
		return nil, err
	}
	if ready.Status != "True" {
		return nil, fmt.Errorf("%s %s/%s is not ready: %s: %s", k.Kind, namespace, name, ready.Reason, ready.Message)
	}
	return last, nil
}

func (r reconciler) notFound(err error, k controllers.Kind, namespace, name string) error {
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return fmt.Errorf("%s object '%s' not found in %q namespace: %w", k.Kind, name, namespace, err)
	}
	return err
}
