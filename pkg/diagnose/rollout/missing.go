package rollout

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// podOwner is a kind of workload with the fields for desired and current pods.
type podOwner struct {
	group      schema.GroupVersion
	kind       string
	want, have controllers.Path
}

// podOwners lists the kinds that report rejected pods only in events, in contrast to Deployments, which have a condition.
var podOwners = []podOwner{
	{appsv1.SchemeGroupVersion, "StatefulSet", controllers.Path{"spec.replicas"}, controllers.Path{"status.replicas"}},
	{appsv1.SchemeGroupVersion, "DaemonSet", controllers.Path{"status.desiredNumberScheduled"}, controllers.Path{"status.currentNumberScheduled"}},
	{appsv1.SchemeGroupVersion, "ReplicaSet", controllers.Path{"spec.replicas"}, controllers.Path{"status.replicas"}},
	{batchv1.SchemeGroupVersion, "Job", controllers.Path{"spec.parallelism"}, controllers.Path{"status.active"}},
}

// missingPods returns why workloads without failing pods have fewer pods than desired: the API server rejects pods because of a
// quota or admission. It describes what could not be read.
func missingPods(ctx context.Context, c *observe.Cluster, namespace string, objects []controllers.ID) (problems []Problem, unknown []string) {
	note := func(what string, err error) {
		if err != nil {
			unknown = append(unknown, observe.Unread(what+" in namespace "+namespace, err))
		}
	}
	err := eachOf(ctx, c, appsv1.SchemeGroupVersion, "Deployment", namespace, objects, func(t controllers.ID, o controllers.Object) {
		d, err := observe.Decode[appsv1.Deployment](o)
		if err != nil {
			return
		}
		if p, found := Deployment(d); found {
			p.Name, p.Object = t.String(), t
			if p.kind != "" { // pods are rejected: add their number
				p.Message = fmt.Sprintf("%d of %d pods are available: %s", d.Status.AvailableReplicas, Replicas(d), p.Message)
			}
			problems = append(problems, p)
		}
	})
	note("Deployments", err)
	var waiting []controllers.ID
	for _, owner := range podOwners {
		err := eachOf(ctx, c, owner.group, owner.kind, namespace, objects, func(t controllers.ID, o controllers.Object) {
			_, complete := controllers.FindCondition(o, "Complete")
			if number(owner.have, o, 0) < number(owner.want, o, 1) && !complete {
				waiting = append(waiting, t)
			}
		})
		note(owner.kind+"s", err)
	}
	if len(waiting) == 0 {
		return problems, unknown
	}
	events, err := c.NewestEvents(ctx, namespace, "reason=FailedCreate,type=Warning")
	note("events of rejected pods", err)
	for _, t := range waiting {
		if e, ok := events[t]; ok {
			p := rejected("FailedCreate", e.Message)
			p.Name, p.Object = t.String(), t
			problems = append(problems, p)
		}
	}
	return problems, unknown
}

// eachOf calls each with the existing objects of a kind. It sends no request if none of objects is of the kind.
func eachOf(ctx context.Context, c *observe.Cluster, gv schema.GroupVersion, kind, namespace string, objects []controllers.ID, each func(controllers.ID, controllers.Object)) error {
	if !slices.ContainsFunc(objects, func(t controllers.ID) bool { return t.Kind == kind }) {
		return nil
	}
	_, err := c.List(ctx, gv.String(), kind, namespace, func(o controllers.Object) error {
		t := controllers.ID{Group: gv.Group, Kind: kind, Namespace: namespace, Name: controllers.Name(o)}
		if slices.Contains(objects, t) {
			each(t, o)
		}
		return nil
	})
	return err
}

// number reads a number, with a default for a missing field.
func number(p controllers.Path, o controllers.Object, otherwise float64) float64 {
	v, _ := p.Lookup(o)
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	default:
		return otherwise
	}
}
