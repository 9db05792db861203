package charts

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
)

// refusing is a Kustomizer that runs nothing: builds that need one end there.
type refusing struct{}

func (refusing) Execute(context.Context, []build.Template, []map[string]any) ([][]string, error) {
	return nil, errors.New("refused")
}

func (refusing) Kustomize(context.Context, string, build.FileSystem) ([][]byte, error) {
	return nil, errors.New("needs a process of its own")
}

func (refusing) Allows(string) bool { return false }

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n"

// constant is a Renderer of one chart.
type constant struct{}

func (constant) Render(context.Context, Release) (*Rendered, error) {
	return &Rendered{
		Chart: "app", Version: "1.0.0", Manifests: []string{head + "data: {a: b}\n"}, Hooks: []string{strings.Replace(head, "{name: cm}", "{name: hook, annotations: {helm.sh/hook: test}}", 1)},
		CRDs: []string{"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\n"},
	}, nil
}

// FuzzHelmRelease builds any object that claims to be a HelmRelease. The memory is bounded, and a
// value out of a Secret is marked wherever it appears.
func FuzzHelmRelease(f *testing.F) {
	for _, spec := range []string{
		"chart: {spec: {chart: app, sourceRef: {kind: HelmRepository, name: r}}}\nvalues: {a: b}", "values: [1]", "chartRef: {kind: OCIRepository, name: x}",
		"valuesFrom: [{kind: Secret, name: s}, {kind: Secret, name: s, valuesKey: password, targetPath: 'a.b[0]'}]", "valuesFrom: [{kind: Secret, name: s, valuesKey: password, targetPath: 'a[9][9][9],b=c'}]",
		"valuesFrom: [{kind: Secret, name: s, valuesKey: password, targetPath: 'a" + strings.Repeat(`[\65536]`, 400) + "'}]",
		"valuesFrom: [{kind: Secret, name: s, valuesKey: password, targetPath: 'a', literal: true}, {kind: Pod, name: s}]",
		"postRenderStrategy: separate\npostRenderers: [{kustomize: {patches: [{patch: \"- {op: add, path: /data/x, value: canary-value}\", target: {kind: ConfigMap}}], images: [{name: a}]}}]",
		"targetNamespace: a/b\nstorageNamespace: ..\nreleaseName: x", "install: {crds: Skip}\nupgrade: {skipCRDs: true}\ncommonMetadata: {labels: {a: b}}", "install: 1",
	} {
		f.Add(spec)
	}
	const secret = "canary-value"
	lookup := build.FromObjects([]*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "apps"},
		"stringData": map[string]any{"password": secret, "values.yaml": "inner: " + secret},
	}}})
	f.Fuzz(func(t *testing.T, spec string) {
		var fields any
		if len(spec) > 4<<10 || budget.Unmarshal("spec", []byte(spec), &fields) != nil {
			return
		}
		hr := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": "app", "namespace": "apps"}, "spec": fields,
		}}
		result, err := HelmRelease(t.Context(), hr, Options{Renderer: constant{}, Chart: &Chart{}, Lookup: lookup, Kustomizer: refusing{}})
		if err != nil {
			return
		}
		if n := nodesOf(result.Values); n > 2*maxListItems {
			t.Errorf("the values have %d nodes", n)
		}
		read := len(result.SecretValues) > 0
		for _, o := range append(result.Objects, result.Hooks...) {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if read && strings.Contains(string(text), secret) && len(o.Secret) == 0 {
				t.Errorf("%q: a secret is not marked in %s", spec, text)
			}
		}
	})
}

// nodesOf counts the nodes of a value.
func nodesOf(value any) int {
	n := 1
	switch value := value.(type) {
	case map[string]any:
		for _, below := range value {
			n += nodesOf(below)
		}
	case []any:
		for _, below := range value {
			n += nodesOf(below)
		}
	}
	return n
}
