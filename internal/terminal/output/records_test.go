package output_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/terminal/output"
)

func app(name, ready string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": name, "managedFields": []any{map[string]any{"manager": "flux"}}},
		"status":   map[string]any{"ready": ready},
	}}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"json": `{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"app"},"status":{"ready":"no"}}
{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"application"},"status":{"ready":"yes"}}
`,
		"yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: app
status:
  ready: "no"
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: application
status:
  ready: "yes"
`,
		"name":                           "kustomization.kustomize.toolkit.fluxcd.io/app\nkustomization.kustomize.toolkit.fluxcd.io/application deleted\n",
		"jsonpath={.status.ready}":       "no\nyes\n",
		"go-template={{.metadata.name}}": "{{.metadata.name}} app\n{{.metadata.name}} application\n",
		"custom-columns=READY:status.ready,N:.metadata.name": "READY   N\nno      app\nyes     application\n",
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			r, err := output.NewRecords(&b, format, output.Templates(func(template string, object []byte) (string, error) {
				var o unstructured.Unstructured
				err := o.UnmarshalJSON(object)
				return template + " " + o.GetName(), err
			}))
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range []*unstructured.Unstructured{app("app", "no"), app("application", "yes")} {
				if err := r.Print(o, i == 1); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecordsRejectUnknownFormats(t *testing.T) {
	t.Parallel()
	if _, err := output.NewRecords(&strings.Builder{}, "nonsense"); err == nil {
		t.Error("no error")
	}
}
