package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

// controllers checks the installed Deployments and reports required ones that are
// missing.
func (c *checker) controllers(ctx context.Context) error {
	ui := c.app.UI
	installed := map[string]*appsv1.Deployment{}
	for name, d := range c.deployments {
		if d.Labels[kube.PartOfLabel] == "flux" {
			installed[name] = d
		}
	}
	for _, name := range c.missing(installed) {
		c.controller(result{Name: name, Status: checkFailed, Message: "deployment missing"}, nil,
			"%s: deployment missing in namespace %q", name, c.rollout.Namespace)
	}
	if len(installed) == 0 {
		message := fmt.Sprintf("no controllers found in namespace %q with the label %s", c.rollout.Namespace, kube.PartOfFlux)
		c.check(result{Name: "controllers", Status: checkFailed, Message: message}, "%s", message)
		if hint := installflags.ElsewhereHint(c.find(kube.InstalledCRD), c.rollout.Namespace); hint != "" {
			ui.Line("  %s", hint)
		}
		return nil
	}
	c.rollout.Names = slices.Sorted(maps.Keys(installed))
	c.rollout.Waiting = func(names []string) {
		ui.Waiting("waiting for %s to start", strings.Join(names, ", "))
	}
	problems, err := c.await(ctx)
	if err != nil {
		return err
	}
	for _, name := range c.rollout.Names {
		c.installedController(installed[name], problems)
	}
	return nil
}

// installedController reports one Deployment and its images.
func (c *checker) installedController(d *appsv1.Deployment, problems map[string]rollout.Problem) {
	r := result{Name: d.Name, Status: checkOK}
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		r.Version = controllers.ImageTag(containers[0].Image)
	}
	t, bad := problems[d.Name]
	switch {
	case bad:
		r.Status, r.Message = checkFailed, redact.Text(t.Message)
		c.controller(r, d, "%s: deployment not ready: %s", d.Name, r.Message)
		for _, line := range t.Details() {
			c.app.UI.Line("  %s", redact.Text(line))
		}
	case d.Spec.Replicas != nil && *d.Spec.Replicas == 0:
		// The Deployment is valid, but nothing is reconciled.
		r.Status, r.Message = checkWarning, "scaled to zero: its resources are not reconciled"
		c.controller(r, d, "%s: deployment %s", d.Name, r.Message)
		c.app.UI.Line("  %s", hint.Command("kubectl -n %s scale deployment %s --replicas=1", c.rollout.Namespace, d.Name))
	default:
		c.controller(r, d, "%s: deployment ready", d.Name)
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		c.app.UI.Action("%s", container.Image)
	}
}

// controller adds a controller to the report and prints its line.
func (c *checker) controller(r result, d *appsv1.Deployment, format string, args ...any) {
	result := controllerResult{result: r, Namespace: c.rollout.Namespace, Images: []string{}}
	if d != nil {
		for _, container := range d.Spec.Template.Spec.Containers {
			result.Images = append(result.Images, container.Image)
		}
	}
	c.report.Controllers = append(c.report.Controllers, result)
	c.say(r.Status, format, args...)
}

func (c *checker) await(ctx context.Context) (map[string]rollout.Problem, error) {
	err := c.rollout.Wait(ctx)
	var notReady *rollout.NotReadyError
	if err != nil && !errors.As(err, &notReady) {
		return nil, err
	}
	problems := map[string]rollout.Problem{}
	if notReady != nil {
		for _, t := range notReady.Problems {
			problems[t.Name] = t
		}
	}
	return problems, nil
}

// missing returns the required controllers that are not installed: the ones that a flag selects, or
// else the ones whose CRDs exist.
func (c *checker) missing(installed map[string]*appsv1.Deployment) []string {
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

func (c *checker) defines(controller string) bool {
	return slices.ContainsFunc(c.crds, func(crd controllers.Object) bool {
		return kube.Label(crd, kube.InstanceLabel) == c.rollout.Namespace && kube.Label(crd, "app.kubernetes.io/component") == controller
	})
}
