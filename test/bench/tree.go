package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// The size of a tree: the number of Deployments in an inventory, each with a
// ReplicaSet and a pod, and the number of namespaces.
const (
	treeObjects    = 500
	treeNamespaces = 5
)

// tree compares the tree of a Kustomization down to the pods with kubectl's list of all
// pods, with delay, which adds up for dependent requests.
func (b *bench) tree(ctx context.Context) error { return b.onCluster(ctx, b.treeOn) }

func (b *bench) treeOn(ctx context.Context, cluster *testcluster.Cluster, home string) (err error) {
	s, err := newSeeder(cluster)
	if err != nil {
		return err
	}
	if err := s.fillTree(ctx); err != nil {
		return fmt.Errorf("seeding a tree: %w", err)
	}
	if err := settled(ctx, cluster.Client); err != nil {
		return err
	}
	proxy, err := testcluster.NewProxy(cluster, far)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	title := fmt.Sprintf("Tree of %d objects with their pods, 40 ms round trips after the connection", treeObjects)
	return b.with("KUBECONFIG="+proxy.Kubeconfig, "HOME="+home).pair(ctx, title, target{wall: 1.5},
		[]string{"flux", "tree", "ks", "all", "-n", "tree-0", "-o", "wide"}, []string{"kubectl", "get", "pods", "-A"})
}

// fillTree creates Deployments, whose pods the sandbox creates, and a Kustomization
// with them in its inventory.
func (s *seeder) fillTree(ctx context.Context) error {
	for i := range treeNamespaces {
		if err := s.create(ctx, namespaceObject(fmt.Sprintf("tree-%d", i)), ""); err != nil {
			return err
		}
	}
	var entries []any
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range treeObjects {
		name, namespace := fmt.Sprintf("web-%03d", i), fmt.Sprintf("tree-%d", i%treeNamespaces)
		entries = append(entries, map[string]any{"id": namespace + "_" + name + "_apps_Deployment", "v": "v1"})
		g.Go(func() error { return s.create(gctx, deployment(namespace, name), namespace) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	ks := kustomization("tree-0", 1)
	ks.SetName("all")
	ks.Object["status"].(map[string]any)["inventory"] = map[string]any{"entries": entries}
	return s.create(ctx, ks, "tree-0")
}

func deployment(namespace, name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return object(deployments().GroupVersion().WithKind("Deployment"), namespace, name, map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "registry.example.com/app:1.2.3"}}},
		},
	}, nil)
}

func deployments() kube.Resource {
	return kube.ResourceFor(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
}

// settled waits until all Deployments are available.
func settled(ctx context.Context, client *kube.Client) error {
	available := map[string]bool{}
	err := client.Follow(ctx, deployments(), kube.Selection{}, "", func(e kube.Event) (bool, error) {
		name := controllers.Namespace(e.Object) + "/" + controllers.Name(e.Object)
		available[name] = (controllers.Path{"status.availableReplicas"}).String(e.Object) == "1"
		count := 0
		for _, is := range available {
			if is {
				count++
			}
		}
		return count == treeObjects, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the pods of %d Deployments: %w", treeObjects, err)
	}
	return nil
}
