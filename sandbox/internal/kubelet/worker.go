package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/sandbox/internal/controller"
	"github.com/fluxkit/flux/sandbox/internal/isolation"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// kustomizer is the controller that runs kustomize.
const kustomizer = "kustomize-controller"

var errDeleted = errors.New("the pod was deleted")

// Restarts are delayed like in a kubelet: the first one is immediate, then after ten seconds, doubled up to
// five minutes, and reset after ten minutes without a restart.
const (
	firstBackOff = 10 * time.Second
	maxBackOff   = 5 * time.Minute
	quiet        = 10 * time.Minute
	// shutdownGrace is the grace period of processes when the sandbox stops.
	shutdownGrace = 10 * time.Second
)

// worker runs one pod of a controller.
type worker struct {
	k          *Kubelet
	controller controller.Controller
	container  string
	dir        string
	ctx        context.Context
	cancel     context.CancelCauseFunc
	log        outputs

	mu       sync.Mutex
	pod      *corev1.Pod
	grace    time.Duration
	ports    map[int32]string
	ignored  []string
	ready    bool
	running  bool
	restarts int32
	last     *corev1.ContainerStateTerminated
}

// outputs contains the log paths of the current and the previous process.
type outputs struct{ current, previous string }

func newWorker(ctx context.Context, k *Kubelet, pod *corev1.Pod, c controller.Controller, container string) *worker {
	w := &worker{k: k, controller: c, container: container, pod: pod, grace: shutdownGrace}
	w.dir = filepath.Join(k.folder.Pods(), folderOf(pod.UID))
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	for _, status := range pod.Status.ContainerStatuses {
		// The process of a pod from an earlier run of the sandbox has exited.
		if status.Name == container && status.ContainerID != "" {
			w.restarts = status.RestartCount + 1
			w.last = &corev1.ContainerStateTerminated{Reason: "Unknown", ExitCode: 137, ContainerID: status.ContainerID}
			if record, err := state.LoadPod(filepath.Join(w.dir, "pod.json")); err == nil {
				w.log.current = record.LogFile
			}
		}
	}
	return w
}

func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pod = pod
}

// stop stops the worker; its process is killed after grace.
func (w *worker) stop(cause error, grace time.Duration) {
	w.mu.Lock()
	w.grace = grace
	w.mu.Unlock()
	w.cancel(cause)
}

func (w *worker) current() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

// address returns the loopback address that replaces a port of the container.
func (w *worker) address(port int32) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		return ""
	}
	return w.ports[port]
}

// isReady reports whether the pod is ready.
func (w *worker) isReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// logFile returns the log of the current or the previous process.
func (w *worker) logFile(previous bool) (path string, current bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if previous {
		return w.log.previous, false
	}
	return w.log.current, true
}

func (w *worker) isRunning(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running && w.log.current == path
}

// run keeps a process running until the worker is stopped.
func (w *worker) run() {
	defer w.cancel(nil)
	wait := time.Duration(0)
	for w.ctx.Err() == nil {
		began := time.Now()
		err := w.once(began)
		if w.ctx.Err() != nil {
			return
		}
		if time.Since(began) > quiet {
			wait = 0
		}
		w.reportWaiting(err, wait)
		if !w.sleep(wait) {
			return
		}
		wait = min(max(2*wait, firstBackOff), maxBackOff)
	}
}

func (w *worker) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// once runs one process until it exits.
func (w *worker) once(began time.Time) error {
	out, err := w.openLog()
	if err != nil {
		return err
	}
	dir, unlink := filepath.Join(w.dir, "tmp"), func() error { return nil }
	if w.controller.Name == kustomizer {
		dir, unlink = temporary(dir)
	}
	child, err := w.start(out, dir)
	if err != nil {
		return errors.Join(err, out.Close(), unlink())
	}
	w.mu.Lock()
	w.running = true
	w.mu.Unlock()
	w.reportRunning(began)
	w.tend(child)
	w.mu.Lock()
	w.running, w.ready = false, false
	w.last = &corev1.ContainerStateTerminated{
		ExitCode: int32(child.ExitCode()), Reason: endReason(child), ContainerID: containerID(w.pod, w.container, w.restarts),
		StartedAt: kubeTime(began), FinishedAt: kubeTime(time.Now()),
	}
	w.restarts++
	w.mu.Unlock()
	return errors.Join(out.Close(), unlink(), os.Remove(filepath.Join(w.dir, "process.json")))
}

func endReason(child *process.Child) string {
	if child.ExitCode() == 0 {
		return "Completed"
	}
	return "Error"
}

// openLog opens the log of a new process and keeps the log of the previous one.
func (w *worker) openLog() (*logWriter, error) {
	dirs := []string{w.dir, filepath.Join(w.dir, "logs"), filepath.Join(w.dir, "tmp"), filepath.Join(w.dir, "home")}
	for _, store := range w.controller.Stores {
		dirs = append(dirs, volume(w.dir, store.Path))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating the pod's directory: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log.previous != "" {
		if err := os.Remove(w.log.previous); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("removing an old log: %w", err)
		}
	}
	path := filepath.Join(w.dir, "logs", fmt.Sprintf("%s-%d.log", w.container, w.restarts))
	file, err := process.OpenLog(path)
	if err != nil {
		return nil, err
	}
	w.log.previous, w.log.current = w.log.current, path
	return &logWriter{file: file, now: time.Now}, nil
}

// start prepares the pod's directory and starts the controller in it, with a directory for temporary files.
func (w *worker) start(out *logWriter, temporary string) (*process.Child, error) {
	pod := w.current()
	command, err := w.command(pod)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(w.dir, "kubeconfig")
	if err := w.writeKubeconfig(pod, kubeconfig); err != nil {
		return nil, err
	}
	namespace, err := w.writeNamespace(pod)
	if err != nil {
		return nil, err
	}
	program := process.Command{
		Path: filepath.Join(w.k.config.ControllerDir, w.controller.Name),
		Args: command.Args, Env: w.environment(pod, kubeconfig, namespace, temporary), Dir: w.dir, Output: out,
	}
	switch {
	case w.k.config.Isolated:
		w.restrict(&program)
	case w.k.config.Untrusted: // other users of this machine could read metrics and profiles
		program.Args = append(program.Args, "--metrics-addr=0")
	}
	child, err := w.k.starter.Start(w.ctx, program)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.ports, w.ignored = command.Ports, command.Ignored
	record := w.record()
	w.mu.Unlock()
	err = errors.Join(state.SaveIdentity(filepath.Join(w.dir, "process.json"), child.Identity),
		state.SavePod(filepath.Join(w.dir, "pod.json"), record))
	if w.k.config.Untrusted {
		err = errors.Join(err, isolation.Memory(child.PID))
	}
	if err != nil {
		child.Stop(0)
		return nil, err
	}
	return child, nil
}

// record returns the record of the pod for other commands; the caller holds the lock.
func (w *worker) record() state.Pod {
	record := state.Pod{
		Controller: w.controller.Name, Namespace: w.pod.Namespace, Name: w.pod.Name, UID: string(w.pod.UID),
		Ports: map[string]int{}, Restarts: w.restarts, LogFile: w.log.current, Started: time.Now().UTC(), Ignored: w.ignored,
	}
	for port, addr := range w.ports {
		record.Ports[fmt.Sprint(port)] = portNumber(addr)
	}
	return record
}

// tend probes the readiness of a process until it exits, and stops it when the
// worker is stopped.
func (w *worker) tend(child *process.Child) {
	probe := newProbe(w.current(), w.container, w.address)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-child.Done():
			return
		case <-w.ctx.Done():
			w.mu.Lock()
			grace := w.grace
			w.ready = false
			w.mu.Unlock()
			child.Stop(grace)
			return
		case <-tick.C:
		}
		if ready, known := probe.check(w.ctx, time.Now(), w.isReady()); known && ready != w.isReady() {
			w.mu.Lock()
			w.ready = ready
			w.mu.Unlock()
			w.reportReady()
		}
	}
}
