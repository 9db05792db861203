package observe

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// logLines is the maximum number of lines of a log to read: the stack follows the message of a panic.
const logLines = 100

// Pods returns the pods of a namespace, sorted by name.
func (c *Cluster) Pods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	return c.pods.get(namespace, func() (pods []*corev1.Pod, err error) {
		_, err = c.List(ctx, "v1", "Pod", namespace, func(o controllers.Object) error {
			p, err := Decode[corev1.Pod](o)
			pods = append(pods, p)
			return err
		})
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		return pods, err
	})
}

// Container identifies a container of a pod.
type Container struct{ Namespace, Pod, Name string }

// Log returns the last log lines of the previous run of a container, or of the current run if there is no previous one. Each line
// is truncated.
func (c *Cluster) Log(ctx context.Context, of Container) ([]string, error) {
	return c.logs.get(of, func() (lines []string, err error) {
		for _, previous := range []bool{true, false} {
			var text []byte
			text, err = c.Client.Pods().Log(ctx, kube.PodLog{Namespace: of.Namespace, Pod: of.Pod, Container: of.Name, Previous: previous, Lines: logLines})
			for line := range strings.Lines(strings.TrimSpace(string(text))) {
				lines = append(lines, failure.OneLine(line))
			}
			if err == nil && len(lines) > 0 {
				return lines, nil
			}
		}
		return nil, err
	})
}
