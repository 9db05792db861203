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

// hold keeps pods off the node that ask to stay pending. The scheduler itself
// then writes the condition and the event, so they read as they do elsewhere.
type hold struct{}

func newHold(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) {
	return hold{}, nil
}

// Name is what the scheduler's configuration calls the plugin.
func (hold) Name() string { return holdName }

// Filter refuses every node to a pod whose annotation asks for it.
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
