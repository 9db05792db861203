package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"

	"github.com/fluxkit/flux/sandbox/internal/simulate"
)

// logWriter writes the output of a process in the log format of container
// runtimes, so that the kubelet's log reader can be used on it.
type logWriter struct {
	mu   sync.Mutex
	file *os.File
	rest []byte
	now  func() time.Time
}

// maxLine is the length at which a line is split.
const maxLine = 16 << 10

// Write splits output into lines and writes the complete ones.
func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		tag := "F"
		switch {
		case i < 0 && len(l.rest) < maxLine:
			return len(p), nil
		case i < 0 || i > maxLine:
			i, tag = maxLine-1, "P"
		}
		line := bytes.TrimSuffix(l.rest[:i+1], []byte("\n"))
		if err := l.line(tag, line); err != nil {
			return 0, err
		}
		l.rest = append([]byte(nil), l.rest[i+1:]...)
	}
}

func (l *logWriter) line(tag string, line []byte) error {
	_, err := fmt.Fprintf(l.file, "%s stdout %s %s\n", l.now().UTC().Format("2006-01-02T15:04:05.000000000Z07:00"), tag, line)
	return err
}

// Close writes an incomplete last line and closes the file.
func (l *logWriter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		if err := l.line("F", l.rest); err != nil {
			return err
		}
	}
	return l.file.Close()
}

// readLogs writes the output of a container.
func (p *pods) readLogs(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, out io.Writer) error {
	w := p.worker(pod)
	if w == nil || w.container != container {
		return p.simulatedLog(ctx, pod, container, o, out)
	}
	path, current := w.logFile(o.Previous)
	if _, err := os.Stat(path); path == "" || err != nil {
		if o.Previous {
			return fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
		}
		return fmt.Errorf("container %q in pod %q is waiting to start: ContainerCreating", container, pod.Name)
	}
	runtime := attempt{running: func() bool { return current && w.isRunning(path) }}
	return logs.ReadLogs(ctx, path, path, logOptions(o, time.Now()), runtime, out, out)
}

// attempt tells the log reader whether the process is running.
type attempt struct {
	internalapi.RuntimeService // the other methods are not called
	running                    func() bool
}

// ContainerStatus implements internalapi.RuntimeService.
func (a attempt) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	status := runtimeapi.ContainerState_CONTAINER_EXITED
	if a.running() {
		status = runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: status}}, nil
}

// simulatedLog writes the log of a simulated container, which has one line.
func (p *pods) simulatedLog(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, out io.Writer) error {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container {
			continue
		}
		if waiting := status.State.Waiting; waiting != nil && status.LastTerminationState.Terminated == nil {
			return fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, reason(waiting))
		}
	}
	if err := simulatedLine(pod, container, o, out); err != nil || !o.Follow {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := p.get(pod.Namespace, pod.Name)
		if err != nil || now.UID != pod.UID || now.Status.Phase != corev1.PodRunning {
			return nil
		}
	}
}

func reason(waiting *corev1.ContainerStateWaiting) string {
	if waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff" {
		return "trying and failing to pull image"
	}
	return waiting.Reason
}

func simulatedLine(pod *corev1.Pod, container string, o *corev1.PodLogOptions, out io.Writer) error {
	started := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		started = pod.Status.StartTime.Time
	}
	tooOld := o.SinceTime != nil && started.Before(o.SinceTime.Time) ||
		o.SinceSeconds != nil && time.Since(started) > time.Duration(*o.SinceSeconds)*time.Second
	if tooOld || (o.TailLines != nil && *o.TailLines == 0) {
		return nil
	}
	line := fmt.Sprintf("container %s of pod %s/%s is simulated by the sandbox", container, pod.Namespace, pod.Name)
	if pod.Annotations[simulate.Annotation] == simulate.CrashLoop {
		line += ": it crashes because of annotation " + simulate.Annotation
	}
	if o.Timestamps {
		line = started.UTC().Format(time.RFC3339Nano) + " " + line
	}
	line += "\n"
	if o.LimitBytes != nil && int64(len(line)) > *o.LimitBytes {
		line = line[:*o.LimitBytes]
	}
	_, err := io.WriteString(out, line)
	return err
}

// logOptions converts the options of a request for the log reader.
func logOptions(o *corev1.PodLogOptions, now time.Time) *logs.LogOptions {
	options := &logs.LogOptions{TailLines: o.TailLines, LimitBytes: o.LimitBytes, Follow: o.Follow, Timestamp: o.Timestamps}
	switch {
	case o.SinceSeconds != nil:
		options.Since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	case o.SinceTime != nil:
		options.Since = o.SinceTime.Time
	}
	return options
}
