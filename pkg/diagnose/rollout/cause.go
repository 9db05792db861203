package rollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// revision is the annotation with the revision of a Deployment or ReplicaSet. hash is the label with the hash of the pod
	// template.
	revision = "deployment.kubernetes.io/revision"
	hash     = "pod-template-hash"
)

// problem returns why a Deployment is not ready. A problem reported by a pod takes precedence over the status of the
// Deployment, and a definite problem takes precedence over progress.
func (w *Waiter) problem(ctx context.Context, name string) (Problem, error) {
	p, err := w.cause(ctx, w.deployments[name])
	p.Name = name
	return p, err
}

func (w *Waiter) cause(ctx context.Context, d *appsv1.Deployment) (Problem, error) {
	if d == nil {
		return Problem{Message: "the Deployment does not exist", Remedy: "install it: flux install", Final: true}, nil
	}
	own, known := Deployment(d)
	if known && own.Vague {
		return own, nil
	}
	best, ending := Problem{Vague: true}, ""
	for _, p := range w.podsOf(d) {
		if p.DeletionTimestamp != nil {
			ending = p.Name
			continue
		}
		c, found := Pod(p)
		if !found {
			continue
		}
		is, err := w.isCurrent(ctx, d, p)
		if err != nil {
			return Problem{}, err
		}
		if is && (best.Message == "" || best.Vague && !c.Vague || c.Final && !best.Final) {
			best = c
		}
	}
	switch {
	case known && (best.Vague || best.Message == ""):
		return own, nil
	case known: // the progress deadline is exceeded because of the pod
		best.Final = best.Final || own.Final
	case best.Message == "" && ending != "":
		best.Message, best.pod = fmt.Sprintf("its previous pod %s has not terminated yet", ending), ending
	case best.Message == "":
		best.Message = fmt.Sprintf("%d of %d pods are available", d.Status.AvailableReplicas, Replicas(d))
	}
	return best, nil
}

// podsOf returns the pods of a Deployment, sorted by name.
func (w *Waiter) podsOf(d *appsv1.Deployment) []*corev1.Pod {
	id := DeploymentID(d.Namespace, d.Name)
	pods := slices.DeleteFunc(slices.Collect(maps.Values(w.pods)), func(p *corev1.Pod) bool { return !Owns(id, p) })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// isCurrent reports whether a pod has the current template of the Deployment. The failure of an earlier pod may be the reason
// for the new template.
func (w *Waiter) isCurrent(ctx context.Context, d *appsv1.Deployment, p *corev1.Pod) (bool, error) {
	key := d.Name + "/" + d.Annotations[revision]
	if _, known := w.templates[key]; !known {
		_, err := w.cluster().List(ctx, appsv1.SchemeGroupVersion.String(), "ReplicaSet", w.Namespace, func(o controllers.Object) error {
			name, number := controllers.Name(o), controllers.Annotation(o, revision)
			if i := strings.LastIndexByte(name, '-'); i > 0 {
				w.templates[name[:i]+"/"+number] = name[i+1:]
			}
			return nil
		})
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("listing the ReplicaSets in namespace %q: %w", w.Namespace, err)
		}
	}
	template, known := w.templates[key]
	return !known || template == p.Labels[hash], nil
}
