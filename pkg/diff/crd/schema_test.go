package crd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestShape checks undeclared fields and violations of a schema.
func TestShape(t *testing.T) {
	t.Parallel()
	var s map[string]any
	if err := yaml.Unmarshal([]byte(`
type: object
required: [spec]
properties:
  spec:
    type: object
    required: [size, mode]
    properties:
      size: {type: integer}
      mode: {type: string, default: fast, enum: [fast, slow]}
      ratio: {type: number}
      on: {type: boolean}
      port: {x-kubernetes-int-or-string: true}
      any: {x-kubernetes-preserve-unknown-fields: true}
      open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
      labels: {type: object, additionalProperties: {type: string}}
      free: {type: object, additionalProperties: true}
      template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      list: {type: array, items: {type: object, required: [name], properties: {name: {type: string}}}}
`), &s); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string][]string{
		`{size: 1}`: nil,
		`{size: 1, ratio: 2, on: true, port: http, any: [1, {a: b}], open: {a: {b: c}, known: x}, labels: {a: b}, free: {a: {b: 1}}, template: {kind: X}, list: [{name: a}]}`: nil,
		`{size: 1, mode: null}`:            nil,
		`{}`:                               {".spec.size: required"},
		`{size: "1", mode: quick}`:         {".spec.mode: must be one of [fast slow]", ".spec.size: must be of type integer"},
		`{size: 1.5}`:                      {".spec.size: must be of type integer"},
		`{size: 1, color: red}`:            {".spec.color: field not declared in schema"},
		`{size: 1, open: {known: 1}}`:      {".spec.open.known: must be of type string"},
		`{size: 1, labels: {a: 1}}`:        {".spec.labels.a: must be of type string"},
		`{size: 1, list: [{name: a}, {}]}`: {".spec.list[1].name: required"},
		`{size: 1, list: {}}`:              {".spec.list: must be of type array"},
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte("{apiVersion: x/v1, kind: X, metadata: {name: x}, spec: "+spec+"}"), &object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Schema(s).Invalid(object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
	object := map[string]any{"kind": "X", "spec": map[string]any{"size": "many", "color": "red"}, "extra": true}
	if diff := cmp.Diff([]string{".extra", ".spec.color"}, Schema(s).Undeclared(object)); diff != "" {
		t.Errorf("undeclared (-want +got):\n%s", diff)
	}
	if found := Schema(nil).Invalid(object); found != nil {
		t.Errorf("without a schema: %v", found)
	}
}
