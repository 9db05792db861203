package part

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"

	"github.com/fluxkit/flux/sandbox/internal/simulate"
)

const holdName = "SandboxHold"

// hold is a scheduler plugin that keeps annotated pods pending. The scheduler
// itself writes the condition and the event, so they read as in a real cluster.
type hold struct{}

func newHold(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) {
	return hold{}, nil
}

// Name returns the name of the plugin in the scheduler's configuration.
func (hold) Name() string { return holdName }

// Filter rejects every node for a pod with the annotation.
func (hold) Filter(_ context.Context, _ framework.CycleState, pod *corev1.Pod, _ framework.NodeInfo) *framework.Status {
	if pod.Annotations[simulate.Annotation] != simulate.Pending {
		return nil
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable,
		fmt.Sprintf("Insufficient memory (annotation %s: %s)", simulate.Annotation, simulate.Pending))
}

func schedulerConfig(kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 200, burst: 400}
leaderElection: {leaderElect: false}
enableProfiling: false
profiles:
- schedulerName: default-scheduler
  plugins:
    filter:
      enabled: [{name: %s}]
`, kubeconfig, holdName)
}
