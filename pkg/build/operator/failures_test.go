package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	setHead      = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set, namespace: apps}\nspec:\n"
	instanceHead = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n"
	providerHead = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata: {name: tags, namespace: apps, labels: {app: web}}\nspec:\n"
	configMap    = "  resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: apps}}]\n"
)

// many returns a list of n inputs.
func many(n int) string { return "[" + strings.Repeat("{a: b},", n-1) + "{a: b}]" }

// TestFailures checks what is reported for ResourceSets and FluxInstances that flux-operator cannot reconcile, and for those
// whose inputs only a cluster knows.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ manifests, want string }{
		"a missing provider":      {setHead + "  inputsFrom: [{name: none}]\n" + configMap, "ResourceSetInputProvider/apps/none is not in the repository: set its inputs with --inputs apps/none=FILE"},
		"a provider of tags":      {providerHead + "  type: OCIArtifactTag\n---\n" + setHead + "  inputsFrom: [{name: tags}]\n" + configMap, "the inputs of ResourceSetInputProvider/apps/tags (OCIArtifactTag) are not in the repository: set them with --inputs apps/tags=FILE"},
		"a selected provider":     {providerHead + "  type: GitHubTag\n---\n" + setHead + "  inputsFrom: [{selector: {matchLabels: {app: web}}}]\n" + configMap, "the inputs of ResourceSetInputProvider/apps/tags (GitHubTag) are not in the repository"},
		"no selected provider":    {providerHead + "  type: Static\n---\n" + setHead + "  inputsFrom: [{selector: {matchLabels: {app: other}}}]\n" + configMap, "no ResourceSetInputProvider in the repository matches the selector in spec.inputsFrom"},
		"an invalid selector":     {setHead + "  inputsFrom: [{selector: {matchExpressions: [{key: a, operator: Near}]}}]\n" + configMap, `building ResourceSet/apps/set: "Near" is not a valid label selector operator`},
		"an unknown strategy":     {setHead + "  inputs: [{a: b}]\n  inputStrategy: {name: Zip}\n" + configMap, `invalid input strategy "Zip": must be Flatten or Permute`},
		"too many permutations":   {providerHead + "  type: GitHubTag\nstatus: {exportedInputs: " + many(101) + "}\n---\n" + setHead + "  inputs: " + many(100) + "\n  inputsFrom: [{name: tags}]\n  inputStrategy: {name: Permute}\n" + configMap, "the inputs have more than 10000 permutations"},
		"the same normalized":     {strings.Replace(providerHead, "name: tags", "name: s-et", 1) + "  type: Static\n---\n" + strings.Replace(setHead, "name: set", "name: s.et", 1) + "  inputs: [{a: b}]\n  inputsFrom: [{name: s-et}]\n  inputStrategy: {name: Permute}\n" + configMap, "have the same name in inputs: s_et"},
		"steps and resources":     {setHead + "  steps: [{name: one}]\n" + configMap, "spec.steps is mutually exclusive with spec.resources and spec.resourcesTemplate"},
		"an object in two steps":  {setHead + "  steps: [{name: one, resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}, {name: two, resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}]", "spec.steps[0] and spec.steps[1] both contain ConfigMap/a"},
		"an unknown input":        {setHead + "  inputs: [{a: b}]\n  resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: << inputs.c >>}}]", `spec.resources[0] (ConfigMap << inputs.c >>): map has no entry for key "c"`},
		"inputs of another kind":  {setHead + "  inputs: [a]\n" + configMap, "reading the spec: json: cannot unmarshal string"},
		"no inputs, but a use":    {setHead + "  resourcesTemplate: '<< inputs.tenant >>'", `spec.resourcesTemplate, line 1: map has no entry for key "tenant"`},
		"an unfinished template":  {setHead + "  resourcesTemplate: '<< if true >>'", "spec.resourcesTemplate, line 1: unexpected EOF"},
		"a forbidden function":    {setHead + "  resourcesTemplate: '<< env \"HOME\" >>'", `spec.resourcesTemplate, line 1: function "env" not defined`},
		"a result that is no map": {setHead + "  resourcesTemplate: 'a: b: c'", "reading the result of spec.resourcesTemplate: "},
		"an object without name":  {setHead + "  resources: [{apiVersion: v1, kind: ConfigMap}]", "spec.resources[0] contains an object without apiVersion, kind or name: ConfigMap/"},
		"data that is missing":    {setHead + "  resources: [{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/none}}}]", "Secret/apps/a: reading Secret/apps/none: not found"},
		"data without namespace":  {setHead + "  resources: [{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: none}}}]", `Secret/apps/a: "none" does not have the form NAMESPACE/NAME`},
		"data of another kind":    {setHead + "  resources: [{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/b}}}]", "Pod/apps/a: only ConfigMaps and Secrets are supported"},
		"another kind of source":  {instanceHead + "  sync: {kind: HelmRepository, url: https://example.com, path: a}", `building FluxInstance/flux-system/flux: invalid spec.sync.kind "HelmRepository": must be GitRepository, OCIRepository or Bucket`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := read(t, []byte(c.manifests))
			owner := in[slices.IndexFunc(in, operator.Renders)]
			result, err := operator.Render(t.Context(), owner, in.options())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s; %v", err, c.want, result)
			}
		})
	}
}

// TestBounds checks that a template does not need more memory than is allowed.
func TestBounds(t *testing.T) {
	t.Parallel()
	in := read(t, []byte(setHead+"  resourcesTemplate: '# << repeat 100000000 `x` >>'"))
	var exceeded *budget.ExceededError
	if _, err := operator.Render(t.Context(), in[0], in.options()); !errors.As(err, &exceeded) {
		t.Errorf("error %v", err)
	}
}

// TestInputs checks that inputs that are given take the place of those of a provider, and are not changed.
func TestInputs(t *testing.T) {
	t.Parallel()
	in := read(t, []byte(providerHead+"  type: GitHubTag\n---\n"+setHead+"  inputsFrom: [{name: tags}]\n  resourcesTemplate: |\n    {apiVersion: v1, kind: ConfigMap, metadata: {name: tag-<< inputs.tag >>, namespace: << inputs.provider.namespace >>}}"))
	o := in.options()
	given := []map[string]any{{"tag": "one"}, {"tag": "two"}}
	o.Inputs = map[controllers.ID][]map[string]any{controllers.IDOf(in[0].Object): given}
	result, err := operator.Render(t.Context(), in[1], o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range result.Objects {
		names = append(names, controllers.IDOf(o.Unstructured.Object).String())
	}
	if got := strings.Join(names, " "); got != "ConfigMap/apps/tag-one ConfigMap/apps/tag-two" || len(given[0]) != 1 {
		t.Errorf("objects %s, inputs %v", got, given)
	}
}

// TestSecretValues checks that what is derived from a Secret is marked: the data of copies, and inputs that another build has
// substituted.
func TestSecretValues(t *testing.T) {
	t.Parallel()
	in := read(t, []byte(`apiVersion: v1
kind: Secret
metadata: {name: source, namespace: apps}
stringData: {token: hunter2}
---
`+providerHead+"  type: Static\n  defaultValues: {password: hunter2, name: public}\n---\n"+setHead+`  inputsFrom: [{name: tags}]
  resources:
    - {apiVersion: v1, kind: Secret, metadata: {name: copy, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/source}}}
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: leak, namespace: apps}
      data: {password: << inputs.password >>, name: << inputs.name >>}
`))
	o := in.options()
	twin := in[1].DeepCopy()
	if err := unstructured.SetNestedField(twin.Object, "other", "spec", "defaultValues", "password"); err != nil {
		t.Fatal(err)
	}
	o.Find = func(ctx context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
		found, err := in.find(ctx, wanted)
		if wanted.Kind == controllers.InputProvider {
			build.Object{Unstructured: in[1], Twin: twin}.Depend(ctx)
		}
		return found, err
	}
	result, err := operator.Render(t.Context(), in[2], o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range result.Objects {
		got[o.GetName()] = fmt.Sprint(o.Secret)
	}
	if got["copy"] != "[[data token]]" || got["leak"] != "[[data password]]" {
		t.Errorf("secret fields %v", got)
	}
}
