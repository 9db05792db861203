package fault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// stateAnnotation is the annotation from which the sandbox simulates the state of a pod, and hookAnnotation the annotation of
// Helm hooks.
const (
	stateAnnotation = "sandbox.fluxkit.dev/state"
	hookAnnotation  = "helm.sh/hook"
)

// The mutations of the policies: for pods, and for hook Jobs, which pass their annotation to their pods.
const (
	mutatePod = "Object{metadata: Object.metadata{annotations: {%q: %q}}}"
	mutateJob = "Object{spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{annotations: {%q: object.metadata.annotations[%[1]q]}}}}}"
)

// policies returns the admission policy that annotates the selected pods when they are created, and its binding.
func (p *Pods) policies(name string) []*unstructured.Unstructured {
	rule := func(group, resource string) any {
		return map[string]any{"apiGroups": []any{group}, "apiVersions": []any{"v1"}, "resources": []any{resource}, "operations": []any{"CREATE"}}
	}
	rules, mutation := []any{rule("", "pods")}, fmt.Sprintf(mutatePod, stateAnnotation, p.State)
	if p.Hook != "" {
		rules = append(rules, rule("batch", "jobs"))
		mutation = `request.resource.resource == "jobs" ? ` + fmt.Sprintf(mutateJob, hookAnnotation) + " : " + mutation
	}
	return []*unstructured.Unstructured{
		policy.Object("MutatingAdmissionPolicy", name, map[string]any{
			"failurePolicy": "Fail", "reinvocationPolicy": "Never",
			"matchConstraints": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": p.Namespace}},
				"resourceRules":     rules,
			},
			"matchConditions": []any{map[string]any{"name": "selected", "expression": p.selects()}},
			"mutations":       []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{"expression": mutation}}},
		}),
		policy.Object("MutatingAdmissionPolicyBinding", name, map[string]any{"policyName": name}),
	}
}

// selects returns the CEL expression that is true for selected pods, and for Jobs of a selected hook, whose pods may have the labels.
func (p *Pods) selects() string {
	is := func(field, key, test string) string {
		return fmt.Sprintf("has(object.metadata.%s) && %q in object.metadata.%[1]s && object.metadata.%[1]s[%[2]q]%[3]s", field, key, test)
	}
	all := []string{"true"}
	if p.Hook != "" {
		all = append(all, is("annotations", hookAnnotation, fmt.Sprintf(`.split(",").exists(hook, hook.trim() == %q)`, p.Hook)))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		all = append(all, `(request.resource.resource == "jobs" || `+is("labels", key, fmt.Sprintf(" == %q", p.Labels[key]))+")")
	}
	return strings.Join(all, " && ")
}

// pods annotates the selected pods of a namespace, including pods that are created during the fault.
func (i Injector) pods(ctx context.Context, name string, p *Pods) (End, error) {
	policies := p.policies(name)
	guarded := Injector{Client: i.Sandbox.Guard}
	if err := kube.Apply(ctx, i.Sandbox.Guard, policies); err != nil {
		return guarded.deleted(policies...), err
	}
	probe := controllers.Object{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "probe", "image": "probe"}}},
		"metadata": map[string]any{"name": name, "namespace": p.Namespace, "labels": texts(p.Labels), "annotations": map[string]any{hookAnnotation: p.Hook}},
	}
	annotated := func(o controllers.Object, err error) bool {
		return err == nil && controllers.Annotation(o, stateAnnotation) == p.State
	}
	removed := guarded.deleted(policies...)
	end := func(ctx context.Context) error {
		if err := removed(ctx); err != nil {
			return err
		}
		// A pod that is created in the meantime would keep the annotation.
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
	return end, i.annotate(ctx, p, p.State) // only running containers can crash
}

// annotate changes the state of the existing pods; nil makes them ready again.
func (i Injector) annotate(ctx context.Context, p *Pods, state any) error {
	pods := kube.BuiltIn("v1", "Pod")
	var names []string
	_, err := i.Client.List(ctx, pods, kube.Selection{Namespace: p.Namespace, Labels: labels.SelectorFromSet(p.Labels).String()}, func(o controllers.Object) error {
		if (p.Hook == "" || controllers.Lists(o, hookAnnotation, p.Hook)) && (state != nil || controllers.Annotation(o, stateAnnotation) == p.State) {
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

// texts returns labels as an unstructured field.
func texts(labels map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range labels {
		all[key] = value
	}
	return all
}
