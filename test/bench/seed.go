package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

const (
	perKind   = 20 // objects of a kind per namespace
	kinds     = 3
	writers   = 32 // concurrent requests
	failsOnce = 17 // one in this many objects is not ready
)

// seeder creates objects with statuses like those of controllers.
type seeder struct {
	client dynamic.Interface
	spaces int // number of existing namespaces
}

func newSeeder(cluster *testcluster.Cluster) (*seeder, error) {
	client, err := dynamic.NewForConfig(cluster.Client.Config)
	return &seeder{client: client}, err
}

// fill adds namespaces until the cluster has the given number of objects.
func (s *seeder) fill(ctx context.Context, objects int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for ; s.spaces < objects/(perKind*kinds); s.spaces++ {
		namespace := fmt.Sprintf("team-%03d", s.spaces)
		if err := s.create(ctx, namespaceObject(namespace), ""); err != nil {
			return err
		}
		secret := object(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespace, "git-credentials", nil, nil)
		secret.Object["stringData"] = map[string]any{"username": "git", "password": "bench"}
		if err := s.create(ctx, secret, namespace); err != nil {
			return err
		}
		for i := range perKind {
			number := s.spaces*perKind + i
			for _, o := range []*unstructured.Unstructured{gitRepository(namespace, number), kustomization(namespace, number), helmRelease(namespace, number)} {
				g.Go(func() error { return s.create(ctx, o, namespace) })
			}
		}
	}
	return g.Wait()
}

// create writes an object and then its status, in two requests by two field
// managers, as in a real cluster.
func (s *seeder) create(ctx context.Context, o *unstructured.Unstructured, namespace string) error {
	resource := s.client.Resource(kube.ResourceFor(o.GroupVersionKind()).GroupVersionResource).Namespace(namespace)
	status := o.Object["status"]
	delete(o.Object, "status")
	created, err := resource.Create(ctx, o, metav1.CreateOptions{FieldManager: "kustomize-controller"})
	if err != nil || status == nil {
		return err
	}
	created.Object["status"] = status
	_, err = resource.UpdateStatus(ctx, created, metav1.UpdateOptions{FieldManager: "gotk-controller"})
	return err
}

func namespaceObject(name string) *unstructured.Unstructured {
	return object(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", name, nil, nil)
}

func object(gvk schema.GroupVersionKind, namespace, name string, spec, status map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"app.kubernetes.io/part-of": "bench", "team": namespace})
	if spec != nil {
		o.Object["spec"] = spec
	}
	if status != nil {
		o.Object["status"] = status
	}
	return o
}

func of(kind string) schema.GroupVersionKind {
	k, _ := controllers.FindKind(kind)
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

func digest(number int) string { return fmt.Sprintf("sha1:%040x", number*2654435761) }

func conditions(number int, reason, message string) []any {
	status := "True"
	if number%failsOnce == 0 {
		status, reason = "False", "BuildFailed"
		message = "accumulating resources: accumulation err='accumulating resources from './missing.yaml': no such file or directory'"
	}
	return []any{map[string]any{
		"type": "Ready", "status": status, "reason": reason, "message": message,
		"lastTransitionTime": "2026-11-01T10:00:00Z", "observedGeneration": int64(1),
	}}
}

func gitRepository(namespace string, number int) *unstructured.Unstructured {
	name := fmt.Sprintf("app-%05d", number)
	revision := "main@" + digest(number)
	return object(of("GitRepository"), namespace, name,
		map[string]any{
			"interval": "1m0s", "url": "https://git.example.com/" + namespace + "/" + name + ".git",
			"ref": map[string]any{"branch": "main"}, "secretRef": map[string]any{"name": "git-credentials"},
		},
		map[string]any{
			"observedGeneration": int64(1), "conditions": conditions(number, "Succeeded", "stored artifact for revision '"+revision+"'"),
			"artifact": map[string]any{
				"digest": "sha256:" + strings.Repeat("0a", 32), "lastUpdateTime": "2026-11-01T10:00:00Z", "revision": revision, "size": int64(4096),
				"path": "gitrepository/" + namespace + "/" + name + "/" + digest(number)[5:] + ".tar.gz",
				"url":  "http://source-controller.flux-system.svc.cluster.local./gitrepository/" + namespace + "/" + name + "/" + digest(number)[5:] + ".tar.gz",
			},
		})
}

func kustomization(namespace string, number int) *unstructured.Unstructured {
	name := fmt.Sprintf("app-%05d", number)
	revision := "main@" + digest(number)
	var entries []any
	for i := range 20 {
		entries = append(entries, map[string]any{"id": fmt.Sprintf("%s_%s-component-%02d_apps_Deployment", namespace, name, i), "v": "v1"})
	}
	return object(of("Kustomization"), namespace, name,
		map[string]any{
			"interval": "10m0s", "retryInterval": "2m0s", "timeout": "5m0s", "path": "./deploy/" + name, "prune": true, "wait": true,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": name}, "targetNamespace": namespace,
		},
		map[string]any{
			"observedGeneration": int64(1), "conditions": conditions(number, "ReconciliationSucceeded", "Applied revision: "+revision),
			"inventory": map[string]any{"entries": entries}, "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
		})
}

func helmRelease(namespace string, number int) *unstructured.Unstructured {
	name := fmt.Sprintf("app-%05d", number)
	values := map[string]any{
		"replicaCount": int64(3), "image": map[string]any{"repository": "registry.example.com/" + namespace + "/" + name, "tag": "1.2.3"},
		"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]any{"memory": "256Mi"}},
		"ingress":   map[string]any{"enabled": true, "hosts": []any{map[string]any{"host": name + ".example.com", "paths": []any{"/", "/api"}}}},
	}
	for i := range 10 {
		values[fmt.Sprintf("setting%02d", i)] = map[string]any{"name": fmt.Sprintf("SETTING_%02d", i), "value": strings.Repeat("value ", 8)}
	}
	snapshot := map[string]any{
		"appVersion": "1.2.3", "chartName": name, "chartVersion": fmt.Sprintf("1.2.%d", number%100), "configDigest": "sha256:" + strings.Repeat("1b", 32),
		"digest": "sha256:" + strings.Repeat("2c", 32), "firstDeployed": "2026-11-01T10:00:00Z", "lastDeployed": "2026-11-01T10:00:00Z",
		"name": name, "namespace": namespace, "status": "deployed", "version": int64(1),
	}
	return object(of("HelmRelease"), namespace, name,
		map[string]any{
			"interval": "10m0s", "values": values,
			"chart": map[string]any{"spec": map[string]any{"chart": name, "version": "1.x", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}},
		},
		map[string]any{
			"observedGeneration": int64(1), "conditions": conditions(number, "InstallSucceeded", "Helm install succeeded for release "+namespace+"/"+name+".v1 with chart "+name+"@1.2.3"),
			"history": []any{snapshot}, "lastAttemptedRevision": "1.2.3", "storageNamespace": namespace,
			"helmChart": namespace + "/" + namespace + "-" + name,
		})
}
