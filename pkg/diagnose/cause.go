package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// revision is the annotation with the revision of a Deployment or ReplicaSet. hash is the label
	// with the hash of the pod template.
	revision = "deployment.kubernetes.io/revision"
	hash     = "pod-template-hash"

	// logLines is the maximum number of log lines to print, and readLines that to read: the stack
	// follows the message of a panic. afterthought is the timeout for finding causes after a wait has
	// timed out.
	logLines     = 5
	readLines    = 100
	afterthought = 5 * time.Second
)

// resource returns the resource of a built-in kind.
func resource(gv schema.GroupVersion, kind string) kube.Resource {
	return kube.ResourceFor(gv.WithKind(kind))
}

func deployments() kube.Resource { return resource(appsv1.SchemeGroupVersion, "Deployment") }

func pods() kube.Resource { return resource(corev1.SchemeGroupVersion, "Pod") }

// cause returns why a Deployment is not ready. A cause that a pod reports takes
// precedence over the status of the Deployment, and a definite cause over
// progress.
func (r *Rollout) cause(ctx context.Context, name string) (Cause, error) {
	d := r.deployments[name]
	if d == nil {
		return Cause{Message: "the Deployment does not exist", Remedy: "install it: flux install", Final: true}, nil
	}
	own, known := Deployment(d)
	if known && own.Vague {
		return own, nil
	}
	best, ending := Cause{Vague: true}, ""
	for _, p := range r.podsOf(d) {
		if p.DeletionTimestamp != nil {
			ending = p.Name
			continue
		}
		c, found := Pod(p)
		if !found {
			continue
		}
		is, err := r.isCurrent(ctx, d, p)
		if err != nil {
			return Cause{}, err
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
		best.Message, best.pod = fmt.Sprintf("its earlier pod %s has not ended yet", ending), ending
	case best.Message == "":
		best.Message = fmt.Sprintf("%d of %d pods are available", d.Status.AvailableReplicas, wanted(d))
	}
	return best, nil
}

// podsOf returns the pods of a Deployment, sorted by name.
func (r *Rollout) podsOf(d *appsv1.Deployment) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, p := range r.pods {
		if owns(deploymentID(d.Namespace, d.Name), p) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// isCurrent reports whether a pod has the current template of the Deployment.
// The failure of an earlier pod may be the reason for the new template.
func (r *Rollout) isCurrent(ctx context.Context, d *appsv1.Deployment, p *corev1.Pod) (bool, error) {
	key := d.Name + "/" + d.Annotations[revision]
	if _, known := r.current[key]; !known {
		_, err := r.Client.List(ctx, resource(appsv1.SchemeGroupVersion, "ReplicaSet"), kube.Selection{Namespace: r.Namespace}, func(o controllers.Object) error {
			name, number := controllers.Name(o), controllers.Annotation(o, revision)
			if i := strings.LastIndexByte(name, '-'); i > 0 {
				r.current[name[:i]+"/"+number] = name[i+1:]
			}
			return nil
		})
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("listing the ReplicaSets in namespace %q: %w", r.Namespace, err)
		}
	}
	template, known := r.current[key]
	return !known || template == p.Labels[hash], nil
}
