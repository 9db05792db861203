//go:build linux

package confine_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fluxkit/flux/test/support/testlimit"
)

// TestNightlyReplicas scales a controller to 30 replicas. When all pods are assigned to the node and 8 of them are running,
// there must be 8 processes. When a running pod is deleted, another one must start.
func TestNightlyReplicas(t *testing.T) {
	t.Parallel()
	const replicas, most, name = 30, 8, "notification-controller"
	run := start(t, map[string]string{
		cluster + "/flux-system/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" +
			"resources: [gotk-components.yaml, gotk-sync.yaml]\nreplicas: [{name: notification-controller, count: 30}]\n",
	}, false)
	client, err := kubernetes.NewForConfig(run.Sandbox.Client.Config)
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods(run.Set.Namespace)
	deadline := time.After(testlimit.Wait)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	// settled returns a running pod when all pods are assigned, most of them run, and gone is deleted.
	settled := func(gone string) string {
		t.Helper()
		for {
			list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
			if err != nil {
				t.Fatal(err)
			}
			assigned, running, deleted := 0, "", true
			started := 0
			for _, p := range list.Items {
				deleted = deleted && p.Name != gone
				if p.Spec.NodeName != "" {
					assigned++
				}
				if p.Status.Phase == corev1.PodRunning {
					started, running = started+1, p.Name
				}
			}
			if n := len(processes(t, run.Sandbox.Dir(), name)); n > most || started > most {
				t.Fatalf("%d processes, and %d pods that run", n, started)
			}
			if deleted && assigned == replicas && started == most {
				return running
			}
			select {
			case <-deadline:
				t.Fatalf("%d of %d pods are assigned to the node, and %d run", assigned, len(list.Items), started)
			case <-tick.C:
			}
		}
	}
	first := settled("")
	if err := pods.Delete(t.Context(), first, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	settled(first)
}
