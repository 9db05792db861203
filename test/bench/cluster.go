package main

import (
	"context"
	"errors"
	"os"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// onCluster runs measure on a cluster with the CRDs of Flux and without controllers.
// kubectl stores its discovery cache in HOME; it is measured with a filled cache, as in
// regular use.
func (b *bench) onCluster(ctx context.Context, measure func(ctx context.Context, cluster *testcluster.Cluster, home string) error) (err error) {
	cluster, err := testcluster.Up(ctx, "none")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Down()) }()
	if err := cluster.InstallCRDs(ctx); err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "flux-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	return measure(ctx, cluster, home)
}
