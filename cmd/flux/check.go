package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	kubernetes "k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

type checkOptions struct {
	pre        bool
	components componentFlags
	// named says that the user said which components there have to be.
	named bool
}

func newCheck(a *app) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that a cluster can run Flux, and that the Flux on it is whole and ready",
		Long: `Check that a cluster can run Flux, and that the controllers and definitions on
it are whole and ready. A controller that is still starting is waited for
within --timeout; anything else that is wrong is reported at once, with why.`,
		Example: `  # Before installing
  flux check --pre

  # After installing
  flux check

  # Fail if the controllers for image updates are missing
  flux check --components-extra=image-reflector-controller,image-automation-controller`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.named = cmd.Flags().Changed("components") || cmd.Flags().Changed("components-extra")
			return a.check(cmd, o)
		},
	}
	cmd.Flags().BoolVar(&o.pre, "pre", false, "check only what has to be there before installing")
	o.components.add(cmd.Flags())
	cmd.Flags().Duration("poll-interval", 5*time.Second, "accepted for compatibility: the controllers are watched, not polled")
	return cmd
}

// checkup is what the checks are about.
type checkup struct {
	app         *app
	rollout     *diagnose.Rollout
	server      *kubernetes.Version
	deployments map[string]*appsv1.Deployment
	crds        []controllers.Object
	required    []string
	named       bool
}

func (a *app) check(cmd *cobra.Command, o *checkOptions) error {
	required, err := o.components.all()
	if err != nil {
		return err
	}
	client, namespace, err := a.place(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	c := &checkup{app: a, required: required, named: o.named, rollout: &diagnose.Rollout{Client: client, Namespace: namespace, Impatient: true}}
	a.ui.Action("checking prerequisites")
	if err := c.fetch(ctx, client, o.pre); err != nil {
		return err
	}
	return c.run(ctx, o.pre)
}

// fetch sends all requests at once; none of the checks needs another's answer.
func (c *checkup) fetch(ctx context.Context, client *kube.Client, pre bool) error {
	requests := []func() error{func() (err error) {
		c.server, err = client.ServerVersion(ctx)
		return err
	}}
	if !pre {
		requests = append(requests, func() (err error) {
			c.deployments, err = c.rollout.Look(ctx)
			return err
		}, func() error {
			_, err := client.List(ctx, crdResource(), kube.Selection{Labels: kube.PartOfFlux}, func(o controllers.Object) error {
				c.crds = append(c.crds, o)
				return nil
			})
			if err != nil {
				return fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
			}
			return nil
		})
	}
	failures := make([]error, len(requests))
	var wg sync.WaitGroup
	for i, request := range requests {
		wg.Go(func() { failures[i] = request() })
	}
	wg.Wait()
	for _, err := range failures {
		if err != nil {
			return err // the same host fails the others for the same reason
		}
	}
	return nil
}

func (c *checkup) run(ctx context.Context, pre bool) error {
	ui := c.app.ui
	ok, err := c.prerequisites()
	if err != nil {
		return err
	}
	if pre {
		return c.verdict(ok, "prerequisites checks passed")
	}
	ui.Action("checking version in cluster")
	ok = c.distribution() && ok
	ui.Action("checking controllers")
	ready, err := c.controllers(ctx)
	if err != nil {
		return err
	}
	ui.Action("checking crds")
	ok = c.definitions() && ok
	return c.verdict(ok && ready, "all checks passed")
}

func (c *checkup) verdict(ok bool, passed string) error {
	if !ok {
		c.app.ui.Failure("check failed")
		return errReported
	}
	c.app.ui.Success("%s", passed)
	return nil
}

func (c *checkup) prerequisites() (bool, error) {
	supported, err := kube.Supports(c.server, controllers.MinKubernetes)
	if err != nil {
		return false, err
	}
	if !supported {
		c.app.ui.Failure("Kubernetes %s is too old: Flux %s needs %s", c.server, controllers.Distribution, controllers.MinKubernetes)
		return false, nil
	}
	c.app.ui.Success("Kubernetes %s %s", c.server, controllers.MinKubernetes)
	return true, nil
}

// distribution tells what is installed, by the labels of the definition that
// every installation has.
func (c *checkup) distribution() bool {
	if crd := c.find(definition); crd != nil {
		if v := kube.Label(crd, kube.VersionLabel); v != "" {
			c.app.ui.Success("distribution: flux-%s", v)
		} else {
			c.app.ui.Warning("the distribution is not known: %s has no label %s", definition, kube.VersionLabel)
		}
		if manager := kube.Label(crd, kube.ManagedByLabel); manager != "" {
			c.app.ui.Success("managed by: %s", manager)
		}
		c.app.ui.Success("bootstrapped: %t", kube.Label(crd, kube.BootstrapLabel) != "")
		return true
	}
	c.app.ui.Failure("Flux is not installed on this cluster, or not whole: there is no CustomResourceDefinition %s", definition)
	c.app.ui.Line("  install it with 'flux install' or 'flux bootstrap'")
	return false
}

func (c *checkup) find(name string) controllers.Object {
	for _, crd := range c.crds {
		if controllers.Name(crd) == name {
			return crd
		}
	}
	return nil
}

// controllers checks the Deployments: those of the installation, and those
// that have to be there.
func (c *checkup) controllers(ctx context.Context) (bool, error) {
	ui := c.app.ui
	installed := map[string]*appsv1.Deployment{}
	for name, d := range c.deployments {
		if d.Labels[kube.PartOfLabel] == "flux" {
			installed[name] = d
		}
	}
	ok := true
	for _, name := range c.missing(installed) {
		ui.Failure("%s: deployment missing in namespace %q", name, c.rollout.Namespace)
		ok = false
	}
	if len(installed) == 0 {
		ui.Failure("no controllers found in namespace %q with the label %s", c.rollout.Namespace, kube.PartOfFlux)
		if hint := elsewhere(c.find(definition), c.rollout.Namespace); hint != "" {
			ui.Line("  %s", hint)
		}
		return false, nil
	}
	c.rollout.Names = slices.Sorted(maps.Keys(installed))
	c.rollout.Waiting = func(names []string) {
		ui.Waiting("waiting for %s to start", strings.Join(names, ", "))
	}
	troubles, err := c.await(ctx)
	if err != nil {
		return false, err
	}
	for _, name := range c.rollout.Names {
		t, bad := troubles[name]
		if replicas := installed[name].Spec.Replicas; !bad && replicas != nil && *replicas == 0 {
			// For Kubernetes that is all in order; for Flux nobody does the work.
			t, bad = diagnose.Trouble{Cause: diagnose.Cause{
				Message: "it is scaled to zero, so no pod of it runs",
				Remedy:  fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1", c.rollout.Namespace, name),
			}}, true
		}
		ok = ok && !bad
		c.verdictOn(name, t, bad)
		for _, container := range installed[name].Spec.Template.Spec.Containers {
			ui.Action("%s", container.Image)
		}
	}
	return ok, nil
}

func (c *checkup) verdictOn(name string, t diagnose.Trouble, bad bool) {
	ui := c.app.ui
	if !bad {
		ui.Success("%s: deployment ready", name)
		return
	}
	ui.Failure("%s: deployment not ready: %s", name, redact.Text(t.Message))
	for _, line := range t.Details() {
		ui.Line("  %s", redact.Text(line))
	}
}

func (c *checkup) await(ctx context.Context) (map[string]diagnose.Trouble, error) {
	err := c.rollout.Wait(ctx)
	var notReady *diagnose.NotReadyError
	if err != nil && !errors.As(err, &notReady) {
		return nil, err
	}
	troubles := map[string]diagnose.Trouble{}
	if notReady != nil {
		for _, t := range notReady.Troubles {
			troubles[t.Name] = t
		}
	}
	return troubles, nil
}

// missing are the controllers that have to be there and are not: those that
// the user named, else those whose definitions are on the cluster.
func (c *checkup) missing(installed map[string]*appsv1.Deployment) []string {
	var names []string
	for _, controller := range controllers.All {
		if _, there := installed[controller.Name]; there {
			continue
		}
		if c.named && slices.Contains(c.required, controller.Name) || !c.named && c.defines(controller.Name) {
			names = append(names, controller.Name)
		}
	}
	return names
}

func (c *checkup) defines(controller string) bool {
	return slices.ContainsFunc(c.crds, func(crd controllers.Object) bool {
		return kube.Label(crd, kube.InstanceLabel) == c.rollout.Namespace && kube.Label(crd, "app.kubernetes.io/component") == controller
	})
}
