package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// reconcile measures the delay between the controller's final status update and
// the end of `flux reconcile kustomization flux-system --with-source`.
func (b *bench) reconcile(ctx context.Context) (err error) {
	cluster, err := testcluster.Up(ctx, "all")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	b.env = append(b.env, "KUBECONFIG="+cluster.Kubeconfig)
	if _, err := b.run(ctx, "flux-sandbox", "git", "create", "fleet", "--dir", cluster.Dir); err != nil {
		return err
	}
	start := time.Now()
	_, err = b.run(ctx, "flux", "bootstrap", "git", "--url="+cluster.Env["FLUX_SANDBOX_GIT_URL"]+"/fleet.git", "--allow-insecure-http",
		"--path=clusters/bench", "--username=bench", "--password=bench", "--token-auth", "--silent")
	if err != nil {
		return err
	}
	fmt.Printf("Bootstrap of a new cluster (target: ≤ 15 s)\n  flux bootstrap git %27.1fs\n\n", time.Since(start).Seconds())
	var after []time.Duration
	for range b.runs {
		lag, err := b.lag(ctx, cluster)
		if err != nil {
			return err
		}
		after = append(after, lag)
	}
	slices.Sort(after)
	fmt.Printf("Delay of reconcile --with-source after the controller's final status (target: ≤ 300 ms)\n")
	fmt.Printf("  median %.0f ms, slowest %.0f ms of %d\n\n", ms(after[len(after)/2]), ms(after[len(after)-1]), len(after))
	return nil
}

// lag reconciles once and returns the time from the watch event with the final status
// until flux exits.
func (b *bench) lag(ctx context.Context, cluster *testcluster.Cluster) (time.Duration, error) {
	k, _ := controllers.FindKind("Kustomization")
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var settled time.Time
	ready := make(chan struct{})
	watched := make(chan error, 1)
	go func() {
		first := true
		before := ""
		watched <- cluster.Client.Follow(ctx, kube.Of(k), kube.Selection{Namespace: "flux-system", Name: "flux-system"}, "", func(e kube.Event) (bool, error) {
			token := controllers.Annotation(e.Object, "reconcile.fluxcd.io/requestedAt")
			if first {
				first, before = false, token
				close(ready)
			}
			if token == before || !k.Settled(e.Object, token) {
				return false, nil
			}
			settled = time.Now()
			return true, nil
		})
	}()
	select {
	case <-ready:
	case err := <-watched:
		return 0, err
	}
	if _, err := b.run(ctx, "flux", strings.Fields("reconcile kustomization flux-system --with-source")...); err != nil {
		return 0, err
	}
	end := time.Now()
	if err := <-watched; err != nil {
		return 0, err
	}
	return max(0, end.Sub(settled)), nil
}
