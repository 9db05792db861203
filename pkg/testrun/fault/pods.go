package fault

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// stateAnnotation is the annotation with which the sandbox simulates the state of a pod.
const stateAnnotation = "sandbox.fluxkit.dev/state"

// pods annotates the pods of a namespace, also those that are created during the fault.
func (i Injector) pods(ctx context.Context, p *Pods) (End, error) {
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	policies := []*unstructured.Unstructured{
		object("MutatingAdmissionPolicy", map[string]any{
			"failurePolicy": "Fail", "reinvocationPolicy": "Never",
			"matchConstraints": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": p.Namespace}},
				"resourceRules": []any{map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}, "operations": []any{"CREATE"},
				}},
			},
			"mutations": []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
				"expression": fmt.Sprintf("Object{metadata: Object.metadata{annotations: {%q: %s}}}", stateAnnotation, strconv.Quote(p.State)),
			}}},
		}),
		object("MutatingAdmissionPolicyBinding", map[string]any{"policyName": name}),
	}
	guarded := Injector{Client: i.Sandbox.Guard}
	if err := kube.Apply(ctx, i.Sandbox.Guard, policies); err != nil {
		return guarded.deleted(policies...), err
	}
	probe := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": p.Namespace},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "probe", "image": "probe"}}},
	}
	annotated := func(o map[string]any, err error) bool {
		return err == nil && controllers.Annotation(o, stateAnnotation) == p.State
	}
	removed := guarded.deleted(policies...)
	end := func(ctx context.Context) error {
		if err := removed(ctx); err != nil {
			return err
		}
		// A pod that is created meanwhile would keep the annotation.
		err := i.until(ctx, kube.BuiltIn("v1", "Pod"), probe, func(o map[string]any, err error) bool { return !annotated(o, err) })
		if err != nil {
			return err
		}
		return i.annotate(ctx, p, nil)
	}
	if err := i.until(ctx, kube.BuiltIn("v1", "Pod"), probe, annotated); err != nil {
		return end, err
	}
	if p.State != crashLoop {
		return end, nil
	}
	return end, i.annotate(ctx, p, p.State) // containers that run can crash
}

// annotate changes the state of the existing pods; nil makes them ready again.
func (i Injector) annotate(ctx context.Context, p *Pods, state any) error {
	pods := kube.BuiltIn("v1", "Pod")
	var names []string
	_, err := i.Client.List(ctx, pods, kube.Selection{Namespace: p.Namespace}, func(o controllers.Object) error {
		if state != nil || controllers.Annotation(o, stateAnnotation) == p.State {
			names = append(names, controllers.Name(o))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		_, err := i.Client.Annotate(ctx, pods, p.Namespace, name, map[string]any{stateAnnotation: state})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// probePause is the time between two probes of admission: what the API server has loaded has no status
// that could be watched.
const probePause = 100 * time.Millisecond

// until repeats the dry run of an object until its answer shows that the API server has loaded a policy
// or a webhook.
func (i Injector) until(ctx context.Context, r kube.Resource, probe map[string]any, loaded func(map[string]any, error) bool) error {
	for {
		o, err := kube.DryRun(ctx, i.Client, r, probe, kube.Applier{Manager: name})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if loaded(o, err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probePause):
		}
	}
}
