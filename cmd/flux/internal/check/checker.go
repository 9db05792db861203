package check

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	kubernetes "k8s.io/apimachinery/pkg/util/version"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

// checker runs the checks of flux check.
type checker struct {
	app         *app.App
	rollout     *rollout.Waiter
	server      *kubernetes.Version
	deployments map[string]*appsv1.Deployment
	crds        []controllers.Object
	required    []string
	named       bool
	report      checkReport
}

// fetch sends all requests concurrently.
func (c *checker) fetch(ctx context.Context, client *kube.Client, pre bool) error {
	requests := []func() error{func() (err error) {
		c.server, err = client.Discovery().ServerVersion(ctx)
		return err
	}}
	if !pre {
		requests = append(requests, func() (err error) {
			c.deployments, err = c.rollout.List(ctx)
			return err
		}, func() error {
			_, err := client.List(ctx, kube.CRDs(), kube.Selection{Labels: kube.PartOfFlux}, func(o controllers.Object) error {
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
			return err // further requests would fail for the same reason
		}
	}
	return nil
}

func (c *checker) find(name string) controllers.Object {
	for _, crd := range c.crds {
		if controllers.Name(crd) == name {
			return crd
		}
	}
	return nil
}
