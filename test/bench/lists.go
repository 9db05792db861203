package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
)

// far is the one-way delay of a distant cluster.
const far = 20 * time.Millisecond

// The numbers of objects in a cluster; the comparison with kubectl uses the second.
const (
	small    = 300
	usual    = 3000
	enormous = 30000
)

// lists compares lists of 3,000 objects with kubectl, with and without delay, and
// measures how the cost of `flux get all -A` grows with the number of objects.
func (b *bench) lists(ctx context.Context) error { return b.onCluster(ctx, b.listsOn) }

func (b *bench) listsOn(ctx context.Context, cluster *testcluster.Cluster, home string) error {
	near := b.with("KUBECONFIG="+cluster.Kubeconfig, "HOME="+home)
	seeder, err := newSeeder(cluster)
	if err != nil {
		return err
	}
	growth := &growth{b: near}
	for _, size := range b.sizes() {
		start := time.Now()
		if err := seeder.fill(ctx, size); err != nil {
			return fmt.Errorf("seeding %d objects: %w", size, err)
		}
		fmt.Printf("Seeded up to %d objects in %.1f s\n\n", size, time.Since(start).Seconds())
		if err := growth.measure(ctx, size); err != nil {
			return err
		}
		if size == enormous {
			if err := near.scale(ctx, size); err != nil {
				return err
			}
		}
		if size != usual {
			continue
		}
		if err := near.compare(ctx, "straight"); err != nil {
			return err
		}
		if err := near.distant(ctx, cluster, home); err != nil {
			return err
		}
	}
	growth.print()
	return nil
}

func (b *bench) sizes() []int {
	if b.large {
		return []int{small, usual, enormous}
	}
	return []int{small, usual}
}

// with returns the same benchmark with additional environment variables.
func (b *bench) with(env ...string) *bench {
	more := *b
	more.env = append(append([]string{}, b.env...), env...)
	return &more
}

// distant measures two models of a distant cluster: a network line, which also delays TCP
// and TLS handshakes, and a proxy, which only delays requests and responses and uses
// HTTP/1.1.
func (b *bench) distant(ctx context.Context, cluster *testcluster.Cluster, home string) (err error) {
	proxy, err := testcluster.NewProxy(cluster, far)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	line, err := testcluster.NewLine(cluster, far)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, line.Close()) }()
	if err := b.with("KUBECONFIG="+proxy.Kubeconfig, "HOME="+home).compareFar(ctx, "40 ms round trips after the connection", target{wall: 0.6}); err != nil {
		return err
	}
	// Both tools wait 120 ms for TCP, TLS and the response here. The target for one
	// object excludes TCP, so this measurement has no target.
	return b.with("KUBECONFIG="+line.Kubeconfig, "HOME="+home).compareFar(ctx, "40 ms round trips, TCP and TLS included", target{})
}

func (b *bench) compare(ctx context.Context, way string) error {
	err := b.pair(ctx, "One kind of 3,000 objects, "+way, target{wall: 0.6, memory: 0.7},
		[]string{"flux", "get", "ks", "-A"}, []string{"kubectl", "get", "kustomizations", "-A"})
	if err != nil {
		return err
	}
	return b.pair(ctx, "One object, "+way, target{},
		[]string{"flux", "get", "ks", "app-00001", "-n", "team-000"}, []string{"kubectl", "get", "kustomization", "app-00001", "-n", "team-000"})
}

func (b *bench) compareFar(ctx context.Context, way string, one target) error {
	err := b.pair(ctx, "All 15 kinds compared with one kind, "+way, target{wall: 2},
		[]string{"flux", "get", "all", "-A"}, []string{"kubectl", "get", "kustomizations", "-A"})
	if err != nil {
		return err
	}
	return b.pair(ctx, "One object, "+way, one,
		[]string{"flux", "get", "ks", "app-00001", "-n", "team-000"}, []string{"kubectl", "get", "kustomization", "app-00001", "-n", "team-000"})
}

// growth is the cost of `flux get all -A` at each size.
type growth struct {
	b     *bench
	sizes []int
	costs []sample
}

func (g *growth) measure(ctx context.Context, size int) error {
	var samples []sample
	for range max(3, g.b.runs/2) {
		s, err := g.b.run(ctx, "flux", "get", "all", "-A")
		if err != nil {
			return err
		}
		samples = append(samples, s)
	}
	g.sizes, g.costs = append(g.sizes, size), append(g.costs, medians(samples))
	return nil
}

// print prints the cost per object as the slope between two sizes, which excludes the
// fixed cost of the program.
func (g *growth) print() {
	fmt.Println("Scaling of flux get all -A (target: constant cost per object)")
	fmt.Printf("  %8s %10s %10s %10s %22s\n", "objects", "wall", "cpu", "memory", "for each further object")
	for i, s := range g.costs {
		fmt.Printf("  %8d %8.1fms %8.1fms %7.1fMiB", g.sizes[i], ms(s.Wall), ms(s.CPU), float64(s.Memory)/1024)
		if i > 0 {
			before, more := g.costs[i-1], g.sizes[i]-g.sizes[i-1]
			fmt.Printf(" %8.1fµs %8.2fKiB", 1000*ms(s.Wall-before.Wall)/float64(more), float64(s.Memory-before.Memory)/float64(more))
		}
		fmt.Println()
	}
	fmt.Println()
}
