package check

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// operator checks the FluxInstances of flux-operator.
func (c *checker) operator(ctx context.Context) error {
	if c.report.Distribution == nil || c.report.Distribution.ManagedBy != controllers.OperatorName {
		return nil
	}
	k, _ := controllers.FindKind(controllers.FluxInstance)
	var instances []controllers.Object
	err := c.rollout.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
		_, err := c.rollout.Client.List(ctx, r, kube.Selection{}, func(o controllers.Object) error {
			instances = append(instances, o)
			return nil
		})
		return err
	})
	var absent *kube.MissingKindError
	switch {
	case apierrors.IsForbidden(err):
		c.check(result{Name: controllers.OperatorName, Status: checkWarning, Message: "no permission to list FluxInstances"}, "no permission to list FluxInstances")
		return nil
	case err != nil && !errors.As(err, &absent):
		return fmt.Errorf("listing the FluxInstances: %w", err)
	case len(instances) == 0:
		r := result{Name: controllers.OperatorName, Status: checkWarning, Message: "no FluxInstance found"}
		c.check(r, "no FluxInstance found: flux-operator installed Flux, but no longer manages it")
		return nil
	}
	for _, o := range instances {
		c.instance(k, o)
	}
	return nil
}

// instance reports whether a FluxInstance is ready.
func (c *checker) instance(k controllers.Kind, o controllers.Object) {
	ready := k.Ready(o)
	r := result{Name: k.IDOf(o).String(), Status: checkOK, Version: k.Result.String(o), Message: ready.Message}
	switch {
	case k.Suspension.Is(o):
		r.Status, r.Message = checkWarning, "suspended"
		c.check(r, "%s: suspended", r.Name)
	case k.IsReady(o):
		c.check(r, "%s: ready", r.Name)
	case ready.Status == "False" && ready.Reason != "":
		r.Status = checkFailed
		c.check(r, "%s: not ready: %s", r.Name, ready.Message)
	default:
		r.Status = checkWarning
		c.check(r, "%s: %s", r.Name, ready.Message)
	}
}
