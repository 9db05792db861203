package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// diffSizes lists the numbers of objects in the Kustomization; the targets apply to the
// second size.
var diffSizes = []int{30, 300, 3000}

// maxKubectl is the largest size measured with kubectl and delay, because kubectl takes 90
// ms per object.
const maxKubectl = 300

// diff compares the diff of a Kustomization of ConfigMaps, one of which has drifted, with
// `kubectl diff --server-side` on the same files, with and without delay.
func (b *bench) diff(ctx context.Context) error { return b.onCluster(ctx, b.diffOn) }

func (b *bench) diffOn(ctx context.Context, cluster *testcluster.Cluster, home string) error {
	client, err := dynamic.NewForConfig(cluster.Client.Config)
	if err != nil {
		return err
	}
	d := &diffBench{b: b.with("HOME=" + home), cluster: cluster, client: client, home: home}
	d.b.exit = 1 // exit code if there are differences
	fmt.Println("Diff of ConfigMaps, one of which has drifted, compared with kubectl diff --server-side (target at 300: ≤ 0.6 without delay, ≤ 0.1 with 40 ms round trips)")
	fmt.Printf("  %8s %-18s %-8s %10s %10s %10s %9s\n", "objects", "", "", "wall", "cpu", "memory", "requests")
	for _, size := range diffSizes {
		if err := d.size(ctx, size); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

type diffBench struct {
	b       *bench
	cluster *testcluster.Cluster
	client  dynamic.Interface
	home    string
}

func (d *diffBench) size(ctx context.Context, size int) error {
	dir, err := d.seed(ctx, size)
	if err != nil {
		return fmt.Errorf("seeding %d objects: %w", size, err)
	}
	for _, way := range []struct {
		name  string
		delay time.Duration
		most  float64
	}{{"straight", 0, 0.6}, {"40 ms round trips", far, 0.1}} {
		if err := d.way(ctx, size, dir, way.name, way.delay, way.most); err != nil {
			return err
		}
	}
	return nil
}

// way measures both commands over one connection. Without delay, only the run that counts
// requests uses the proxy.
func (d *diffBench) way(ctx context.Context, size int, dir, name string, delay time.Duration, most float64) (err error) {
	proxy, err := testcluster.NewProxy(d.cluster, delay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	var requests atomic.Int64
	proxy.OnRequest(func(string, string) { requests.Add(1) })
	kubeconfig := d.cluster.Kubeconfig
	if delay > 0 {
		kubeconfig = proxy.Kubeconfig
	}
	ours := []string{"flux", "diff", "ks", fmt.Sprintf("diff-%d", size), "--path", dir, "--progress-bar=false"}
	theirs := []string{"kubectl", "diff", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", dir}
	a, err := d.measure(ctx, ours, kubeconfig, max(3, d.b.runs/2))
	if err != nil {
		return err
	}
	counted, err := d.count(ctx, ours, proxy, &requests)
	if err != nil {
		return err
	}
	row := func(who string, s sample, n int64) {
		fmt.Printf("  %8d %-18s %-8s %8.0fms %8.0fms %7.1fMiB %9d\n", size, name, who, ms(s.Wall), ms(s.CPU), float64(s.Memory)/1024, n)
	}
	row("flux", a, counted)
	if delay > 0 && size > maxKubectl {
		return nil
	}
	k, err := d.measure(ctx, theirs, kubeconfig, 3)
	if err != nil {
		return err
	}
	if counted, err = d.count(ctx, theirs, proxy, &requests); err != nil {
		return err
	}
	row("kubectl", k, counted)
	verdict := ""
	if size == 300 {
		verdict = target{}.judge(ratio(a.Wall, k.Wall), most)
	}
	fmt.Printf("  %8s %-18s %-8s %10.2f %10.2f %10.2f %s\n", "", "", "ratio", ratio(a.Wall, k.Wall), ratio(a.CPU, k.CPU), float64(a.Memory)/float64(k.Memory), verdict)
	return nil
}

func (d *diffBench) measure(ctx context.Context, line []string, kubeconfig string, runs int) (sample, error) {
	var samples []sample
	for i := range runs + 1 {
		s, err := d.b.with("KUBECONFIG="+kubeconfig).run(ctx, line[0], line[1:]...)
		if err != nil {
			return s, err
		}
		if i > 0 { // fills the caches
			samples = append(samples, s)
		}
	}
	return medians(samples), nil
}

// count returns the number of requests of an additional run.
func (d *diffBench) count(ctx context.Context, line []string, proxy *testcluster.Proxy, requests *atomic.Int64) (int64, error) {
	before := requests.Load()
	_, err := d.b.with("KUBECONFIG="+proxy.Kubeconfig).run(ctx, line[0], line[1:]...)
	return requests.Load() - before, err
}

// seed writes the files and applies them like the controller, with a drifted field in one
// object.
func (d *diffBench) seed(ctx context.Context, size int) (string, error) {
	dir := filepath.Join(d.home, fmt.Sprintf("files-%d", size))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("diff-%d", size)
	ks := fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: flux-system}
spec: {interval: 10m, prune: true, path: ./, sourceRef: {kind: GitRepository, name: bench}}
`, name)
	system := "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n---\n"
	if err := d.cluster.Seed(ctx, []byte(system+ks), "flux-system"); err != nil {
		return "", err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range size {
		content := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: config-%04d
  namespace: %s
  labels: {app: bench, kustomize.toolkit.fluxcd.io/name: %[2]s, kustomize.toolkit.fluxcd.io/namespace: flux-system}
data: {number: "%[1]d", text: %q}
`, i, name, strings.Repeat("some configuration ", 20))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("config-%04d.yaml", i)), []byte(content), 0o600); err != nil {
			return "", err
		}
		live := content
		if i == size/2 {
			live = strings.Replace(content, "number:", "drifted: \"yes\", number:", 1)
		}
		g.Go(func() error { return d.apply(ctx, live) })
	}
	return dir, g.Wait()
}

func (d *diffBench) apply(ctx context.Context, manifest string) error {
	objects, err := testcluster.Decode([]byte(manifest))
	if err != nil {
		return err
	}
	for _, o := range objects {
		r := d.client.Resource(kube.ResourceFor(o.GroupVersionKind()).GroupVersionResource).Namespace(o.GetNamespace())
		if _, err := r.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true}); err != nil {
			return err
		}
	}
	return nil
}
