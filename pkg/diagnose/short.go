package diagnose

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// podOwner is a kind of workload with the fields for desired and current pods.
type podOwner struct {
	group      schema.GroupVersion
	kind       string
	want, have controllers.Path
}

// podOwners lists the kinds that report rejected pods only in events, in contrast to Deployments,
// which have a condition.
var podOwners = []podOwner{
	{appsv1.SchemeGroupVersion, "StatefulSet", controllers.Path{"spec.replicas"}, controllers.Path{"status.replicas"}},
	{appsv1.SchemeGroupVersion, "DaemonSet", controllers.Path{"status.desiredNumberScheduled"}, controllers.Path{"status.currentNumberScheduled"}},
	{appsv1.SchemeGroupVersion, "ReplicaSet", controllers.Path{"spec.replicas"}, controllers.Path{"status.replicas"}},
	{batchv1.SchemeGroupVersion, "Job", controllers.Path{"spec.parallelism"}, controllers.Path{"status.active"}},
}

// short returns why workloads without failing pods have fewer pods than
// desired: the API server rejects pods because of a quota or admission. It
// describes what could not be read.
func (w *workloads) short(ctx context.Context, namespace string, quiet []controllers.ID) (troubles []Trouble, unknown []string) {
	missed := func(err error, what string) {
		if err != nil {
			unknown = append(unknown, unseen(err)+": "+what+" in namespace "+namespace)
		}
	}
	troubles, err := shortDeployments(ctx, w.client, namespace, quiet)
	missed(err, "Deployments")
	var waiting []controllers.ID
	for _, owner := range podOwners {
		found, err := owner.waiting(ctx, w.client, namespace, quiet)
		missed(err, owner.kind+"s")
		waiting = append(waiting, found...)
	}
	if len(waiting) == 0 {
		return troubles, unknown
	}
	refusals, err := w.history.refusedPods(ctx, namespace)
	missed(err, "events of rejected pods")
	for _, t := range waiting {
		if e, ok := refusals[t]; ok {
			troubles = append(troubles, Trouble{t.String(), refused("FailedCreate", e)})
		}
	}
	return troubles, unknown
}

func shortDeployments(ctx context.Context, client *kube.Client, namespace string, quiet []controllers.ID) ([]Trouble, error) {
	names := namesOf("Deployment", quiet)
	if len(names) == 0 {
		return nil, nil
	}
	var troubles []Trouble
	_, err := client.List(ctx, deployments(), kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields"}}, func(o controllers.Object) error {
		d := &appsv1.Deployment{}
		if !slices.Contains(names, controllers.Name(o)) || runtime.DefaultUnstructuredConverter.FromUnstructured(o, d) != nil {
			return nil
		}
		if c, found := Deployment(d); found {
			if c.kind != "" { // pods are rejected: add their number
				c.Message = fmt.Sprintf("%d of %d pods run: %s", d.Status.AvailableReplicas, wanted(d), c.Message)
			}
			troubles = append(troubles, Trouble{"Deployment/" + namespace + "/" + d.Name, c})
		}
		return nil
	})
	return troubles, err
}

func namesOf(kind string, targets []controllers.ID) []string {
	var names []string
	for _, t := range targets {
		if t.Kind == kind {
			names = append(names, t.Name)
		}
	}
	return names
}

// waiting returns the workloads of a kind that have fewer pods than desired.
func (p podOwner) waiting(ctx context.Context, client *kube.Client, namespace string, quiet []controllers.ID) ([]controllers.ID, error) {
	names := namesOf(p.kind, quiet)
	if len(names) == 0 {
		return nil, nil
	}
	var short []controllers.ID
	_, err := client.List(ctx, resource(p.group, p.kind), kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields"}}, func(o controllers.Object) error {
		if !slices.Contains(names, controllers.Name(o)) {
			return nil
		}
		_, complete := controllers.FindCondition(o, "Complete")
		if number(p.have, o, 0) < number(p.want, o, 1) && !complete {
			short = append(short, controllers.ID{Group: p.group.Group, Kind: p.kind, Namespace: namespace, Name: controllers.Name(o)})
		}
		return nil
	})
	return short, err
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

// finding returns the trouble as the root of a case, with remedies for a quota.
func (t Trouble) finding(object controllers.ID) Finding {
	f := Finding{Object: object, Code: "health", Message: t.Message, Details: t.Details()}
	if q := t.rejection; q.Type == failure.Quota {
		f.Code = "quota"
		f.Remedies = []string{
			fmt.Sprintf("raise the ResourceQuota %s in namespace %s, or let the workload request less (%s)", q.By, object.Namespace, q.Detail),
			hint.Command("kubectl -n %s describe resourcequota %s", object.Namespace, q.By),
		}
	}
	return f
}
