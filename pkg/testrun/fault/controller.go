package fault

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// kill deletes the pods of a controller without a grace period.
func (i Injector) kill(ctx context.Context, controller string) error {
	pods := kube.BuiltIn("v1", "Pod")
	var names []string
	_, err := i.Client.List(ctx, pods, kube.Selection{Namespace: i.Home, Labels: "app=" + controller}, func(o controllers.Object) error {
		names = append(names, controllers.Name(o))
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no pods found")
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := i.Client.Pods().Kill(ctx, i.Home, name); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// held is the duration for which a controller's lease is taken: longer than a step.
const held = 2 * time.Hour

// takeLease assigns a controller's lease to another process, and kills the controller, which would
// otherwise reconcile until it fails to renew the lease.
func (i Injector) takeLease(ctx context.Context, controller string) (End, error) {
	leases, lease := kube.BuiltIn("coordination.k8s.io/v1", "Lease"), controller+"-leader-election"
	now := i.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	hold := func(ctx context.Context, holder string, seconds int) error {
		_, err := i.Client.MergePatch(ctx, leases, i.Home, lease, map[string]any{"spec": map[string]any{
			"holderIdentity": holder, "leaseDurationSeconds": seconds, "acquireTime": now, "renewTime": now,
		}})
		return err
	}
	if err := hold(ctx, name, int(held.Seconds())); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return hold(ctx, "", 1) }, i.kill(ctx, controller)
}
