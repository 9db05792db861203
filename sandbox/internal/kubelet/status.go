package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func containerID(pod *corev1.Pod, container string, attempt int32) string {
	return fmt.Sprintf("sandbox://%s/%s/%d", pod.UID, container, attempt)
}

// podIP returns an address that no interface has, because the API server rejects loopback addresses as endpoints. It
// does not change during the life of the pod, and is outside of the range that kwok uses for simulated pods.
func podIP(pod *corev1.Pod) string {
	if pod.Status.PodIP != "" {
		return pod.Status.PodIP
	}
	h := fnv.New32a()
	// A hash never returns an error.
	_, _ = h.Write([]byte(pod.UID))
	sum := h.Sum32()
	return fmt.Sprintf("10.245.%d.%d", sum>>8&0xff, 1+sum%254)
}

// reportRunning sets the pod's status to running and not ready.
func (w *worker) reportRunning(began time.Time) {
	w.report(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: kubeTime(began)}})
}

// reportReady updates the readiness of a running pod.
func (w *worker) reportReady() {
	state := corev1.ContainerState{}
	for _, status := range w.current().Status.ContainerStatuses {
		if status.Name == w.container {
			state.Running = status.State.Running
		}
	}
	if state.Running == nil {
		state.Running = &corev1.ContainerStateRunning{StartedAt: kubeTime(time.Now())}
	}
	w.report(state)
}

// reportWaiting sets the reason why no process is running.
func (w *worker) reportWaiting(err error, wait time.Duration) {
	w.mu.Lock()
	terminated, pod := w.last, w.pod
	w.mu.Unlock()
	switch {
	case err != nil:
		w.k.log.Error("running a controller", "pod", pod.Name, "error", err)
		w.report(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CreateContainerError", Message: err.Error(),
		}})
		w.event("Failed", "Error: "+err.Error())
	case wait == 0:
		w.report(corev1.ContainerState{Terminated: terminated})
	default:
		w.report(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				wait, w.container, pod.Name, pod.Namespace, pod.UID),
		}})
		w.event("BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)",
			w.container, pod.Name, pod.Namespace, pod.UID))
	}
}

// report patches the pod's status. A pod that was deleted is ignored.
func (w *worker) report(current corev1.ContainerState) {
	pod := w.current()
	patch, err := statusPatch(pod.UID, w.status(pod, current))
	if err != nil {
		w.k.log.Error("encoding a pod's status", "pod", pod.Name, "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	updated, err := w.k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case err == nil:
		w.update(updated)
	case w.ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
		w.k.log.Error("writing a pod's status", "pod", pod.Name, "error", err)
	}
}

// statusPatch returns a strategic merge patch. Such a patch keeps fields that it does not contain, so it explicitly
// removes the reason and the message of an earlier state of a condition.
func statusPatch(uid types.UID, status corev1.PodStatus) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	for i, c := range status.Conditions {
		condition := fields["conditions"].([]any)[i].(map[string]any)
		if c.Reason == "" {
			condition["reason"] = nil
		}
		if c.Message == "" {
			condition["message"] = nil
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
}

// status returns the status that a kubelet would report for the container state.
func (w *worker) status(pod *corev1.Pod, current corev1.ContainerState) corev1.PodStatus {
	w.mu.Lock()
	ready, restarts, last := w.ready, w.restarts, w.last
	w.mu.Unlock()
	started := current.Running != nil
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "127.0.0.1", HostIPs: []corev1.HostIP{{IP: "127.0.0.1"}},
		PodIP: podIP(pod), PodIPs: []corev1.PodIP{{IP: podIP(pod)}}, StartTime: pod.Status.StartTime,
	}
	if status.StartTime == nil {
		now := kubeTime(time.Now())
		status.StartTime = &now
	}
	for _, c := range pod.Spec.Containers {
		s := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: ready, Started: &started, State: current,
			RestartCount: restarts, ContainerID: containerID(pod, c.Name, restarts),
		}
		if last != nil && current.Terminated == nil {
			s.LastTerminationState.Terminated = last
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	status.Conditions = conditions(pod, ready, time.Now())
	return status
}

// conditions keeps the transition time of unchanged conditions.
func conditions(pod *corev1.Pod, ready bool, now time.Time) []corev1.PodCondition {
	set := func(kind corev1.PodConditionType, yes bool) corev1.PodCondition {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: kubeTime(now)}
		if !yes {
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
			c.Message = "containers with unready status: " + names(pod)
		}
		for _, old := range pod.Status.Conditions {
			if old.Type == kind && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		return c
	}
	return []corev1.PodCondition{
		set(corev1.PodReadyToStartContainers, true), set(corev1.PodInitialized, true),
		set(corev1.PodReady, ready), set(corev1.ContainersReady, ready),
	}
}

func names(pod *corev1.Pod) string {
	var list []string
	for _, c := range pod.Spec.Containers {
		list = append(list, c.Name)
	}
	return fmt.Sprint(list)
}

// event creates an Event of the pod, as a kubelet does.
func (w *worker) event(reason, message string) {
	pod := w.current()
	now := metav1.Now()
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	_, err := w.k.client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			FieldPath: "spec.containers{" + w.container + "}",
		},
		Reason: reason, Message: message, Type: corev1.EventTypeWarning, Count: 1,
		Source: corev1.EventSource{Component: "kubelet", Host: NodeName}, FirstTimestamp: now, LastTimestamp: now,
	}, metav1.CreateOptions{})
	if err != nil && w.ctx.Err() == nil {
		w.k.log.Error("recording an event", "pod", pod.Name, "error", err)
	}
}
