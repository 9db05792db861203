package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/fluxkit/flux/sandbox/internal/controller"
)

// pods caches the pods of the node and owns the workers of pods that run as processes.
type pods struct {
	k        *Kubelet
	informer cache.SharedIndexInformer
	lister   corelisters.PodLister
	services corelisters.ServiceLister

	group   sync.WaitGroup
	mu      sync.Mutex
	workers map[types.UID]*worker
}

func newPods(k *Kubelet) *pods { return &pods{k: k, workers: map[types.UID]*worker{}} }

// watch starts the informers and waits for their caches.
func (k *Kubelet) watch(ctx context.Context) error {
	onNode := informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", NodeName).String()
	})
	podFactory := informers.NewSharedInformerFactoryWithOptions(k.client, 0, onNode)
	k.pods.informer = podFactory.Core().V1().Pods().Informer()
	k.pods.lister = podFactory.Core().V1().Pods().Lister()
	serviceFactory := informers.NewSharedInformerFactory(k.client, 0)
	serviceInformer := serviceFactory.Core().V1().Services().Informer()
	k.pods.services = serviceFactory.Core().V1().Services().Lister()
	podFactory.Start(ctx.Done())
	serviceFactory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), k.pods.informer.HasSynced, serviceInformer.HasSynced) {
		return fmt.Errorf("reading pods and services: %w", context.Cause(ctx))
	}
	return nil
}

// work runs the pods of controllers until ctx is canceled, and returns when their
// processes have exited.
func (p *pods) work(ctx context.Context) {
	p.sweep()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.handle(ctx, o) },
		UpdateFunc: func(_, o any) { p.handle(ctx, o) },
		DeleteFunc: p.handleDelete,
	}
	registration, err := p.informer.AddEventHandler(handler)
	if err != nil {
		p.k.log.Error("watching pods", "error", err)
		return
	}
	<-ctx.Done()
	if err := p.informer.RemoveEventHandler(registration); err != nil {
		p.k.log.Error("watching pods", "error", err)
	}
	p.group.Wait()
}

// sweep removes the directories of pods that were deleted while the agent was not running.
func (p *pods) sweep() {
	entries, err := os.ReadDir(p.k.folder.Pods())
	if err != nil {
		p.k.log.Error("reading the pods' directory", "error", err)
		return
	}
	living := map[string]bool{}
	for _, o := range p.informer.GetStore().List() {
		living[folderOf(o.(*corev1.Pod).UID)] = true
	}
	for _, entry := range entries {
		if !living[entry.Name()] {
			p.removeFolder(entry.Name())
		}
	}
}

// folderOf returns the directory name of a pod. It is the first part of a random UID, because the length of socket paths is
// limited.
func folderOf(uid types.UID) string {
	first, _, _ := strings.Cut(string(uid), "-")
	return first
}

func (p *pods) removeFolder(name string) {
	if err := os.RemoveAll(filepath.Join(p.k.folder.Pods(), name)); err != nil {
		p.k.log.Error("removing a pod's directory", "folder", name, "error", err)
	}
}

// handle handles the creation or an update of a pod.
func (p *pods) handle(ctx context.Context, o any) {
	pod, ok := o.(*corev1.Pod)
	if !ok || ctx.Err() != nil {
		return
	}
	name, container := p.k.config.Selection().Controller(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.workers[pod.UID]
	switch {
	case w != nil && pod.DeletionTimestamp != nil:
		w.stop(errDeleted, grace(pod))
	case w != nil:
		w.update(pod)
	case name == "":
	case pod.DeletionTimestamp != nil:
		p.group.Go(func() { p.finish(ctx, pod) })
	case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && p.running(name) < maxProcesses:
		p.start(ctx, pod, name, container.Name)
	}
}

// maxProcesses limits the number of processes of one controller. Its other pods stay pending until a process exits, so that
// a Deployment with many replicas does not exhaust the memory of this machine.
const maxProcesses = 8

// running returns the number of workers of a controller; the caller holds the lock.
func (p *pods) running(name string) int {
	n := 0
	for _, w := range p.workers {
		if w.controller.Name == name {
			n++
		}
	}
	return n
}

// start starts a worker; the caller holds the lock.
func (p *pods) start(ctx context.Context, pod *corev1.Pod, name, container string) {
	c, ok := controller.Get(name)
	if !ok {
		return
	}
	w := newWorker(ctx, p.k, pod, c, container)
	p.workers[pod.UID] = w
	p.group.Go(func() {
		w.run()
		if errors.Is(context.Cause(w.ctx), errDeleted) {
			p.finish(ctx, pod)
		}
		p.mu.Lock()
		delete(p.workers, pod.UID)
		p.mu.Unlock()
		// A pod may be waiting for this process to exit.
		for _, waiting := range p.informer.GetStore().List() {
			p.handle(ctx, waiting)
		}
	})
}

// handleDelete handles the deletion of a pod that did not wait for the agent.
func (p *pods) handleDelete(o any) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[pod.UID]; w != nil {
		w.stop(errDeleted, 0)
	}
}

// finish deletes the pod object after its process has exited, as a kubelet does. It repeats a failed request until the
// sandbox stops.
func (p *pods) finish(ctx context.Context, pod *corev1.Pod) {
	for !p.remove(ctx, pod) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
	p.removeFolder(folderOf(pod.UID))
}

// remove deletes the pod object and reports whether it no longer exists.
func (p *pods) remove(ctx context.Context, pod *corev1.Pod) bool {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	now := int64(0)
	err := p.k.client.CoreV1().Pods(pod.Namespace).Delete(bounded, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a conflict: another pod has the name
		return true
	}
	p.k.log.Error("deleting a pod", "pod", pod.Name, "error", err)
	return false
}

func grace(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds == nil {
		return 30 * time.Second
	}
	return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
}

func (p *pods) get(namespace, name string) (*corev1.Pod, error) {
	return p.lister.Pods(namespace).Get(name)
}

func (p *pods) worker(pod *corev1.Pod) *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers[pod.UID]
}

// address returns the loopback address of a pod's port, and whether the pod runs as a process.
func (p *pods) address(pod *corev1.Pod, port int32) (addr string, real bool) {
	w := p.worker(pod)
	if w == nil {
		return "", false
	}
	return w.address(port), true
}
