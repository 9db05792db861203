package fault

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// stateAnnotation is the annotation with which the sandbox simulates the state of a pod.
const stateAnnotation = "sandbox.fluxkit.dev/state"

// pods annotates the pods of a namespace, including those that are created during the fault.
func (i Injector) pods(ctx context.Context, p *Pods) (End, error) {
	policies := []*unstructured.Unstructured{
		policy.Object("MutatingAdmissionPolicy", name, map[string]any{
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
		policy.Object("MutatingAdmissionPolicyBinding", name, map[string]any{"policyName": name}),
	}
	guarded := Injector{Client: i.Sandbox.Guard}
	if err := kube.Apply(ctx, i.Sandbox.Guard, policies); err != nil {
		return guarded.deleted(policies...), err
	}
	probe := controllers.Object{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": p.Namespace},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "probe", "image": "probe"}}},
	}
	annotated := func(o controllers.Object, err error) bool {
		return err == nil && controllers.Annotation(o, stateAnnotation) == p.State
	}
	removed := guarded.deleted(policies...)
	end := func(ctx context.Context) error {
		if err := removed(ctx); err != nil {
			return err
		}
		// A pod that is created meanwhile would keep the annotation.
		err := policy.Await(ctx, i.Client, kube.BuiltIn("v1", "Pod"), probe, func(o controllers.Object, err error) bool { return !annotated(o, err) })
		if err != nil {
			return err
		}
		return i.annotate(ctx, p, nil)
	}
	if err := policy.Await(ctx, i.Client, kube.BuiltIn("v1", "Pod"), probe, annotated); err != nil {
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
