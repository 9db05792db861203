//go:build linux

package confine_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// TestNightlyMemory applies a ResourceSet whose template requires more memory than a controller may allocate: flux-operator
// exits, and is started again.
func TestNightlyMemory(t *testing.T) {
	t.Parallel()
	run, ctx := prepare(t, map[string]string{cluster + "/set.yaml": `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: large, namespace: flux-system}
spec:
  inputs: [{name: a}]
  resources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "n<< len (until 700000000) >>", namespace: default}}
`}, false)
	if err := run.Start(ctx); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(run.Sandbox.Client.Config)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(testlimit.Wait)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := client.CoreV1().Pods(run.Set.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + controllers.OperatorName})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			for _, c := range p.Status.ContainerStatuses {
				if c.RestartCount > 0 && c.LastTerminationState.Terminated != nil && c.LastTerminationState.Terminated.ExitCode == 2 {
					return // the exit code of a Go program that cannot allocate memory
				}
			}
		}
		select {
		case <-deadline:
			t.Fatalf("flux-operator has not exited: %+v", list.Items)
		case <-tick.C:
		}
	}
}
