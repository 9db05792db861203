package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/validate/schema"
	"github.com/fluxkit/flux/pkg/validate/verdict"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// widget is the kind of the objects in these tests.
const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\n"

// root returns a JSON schema with properties of spec, as tools for kubeconform write it.
func root(spec string) string {
	return `{"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": ` +
		spec + `, "status": {"type": "object", "properties": {"num": {"type": "integer"}}, "additionalProperties": false}}}`
}

func validateWith(t testing.TB, text, object string) verdict.Verdict {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	kind := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	verdicts, err := schema.NewValidator().Validate(t.Context(), verdict.Request{
		Kubernetes: "1.36", Objects: []json.RawMessage{encoded}, Schemas: []verdict.Schema{{Kind: kind, Text: json.RawMessage(text)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return verdicts[0]
}

// TestPublished compares the verdicts on objects with JSON schemas. Each violation is beside an object that is valid.
func TestPublished(t *testing.T) {
	t.Parallel()
	closed := func(properties string) string {
		return root(`{"type": "object", "properties": {` + properties + `}, "additionalProperties": false}`)
	}
	for _, c := range []struct{ name, schema, spec, want string }{
		{"type", closed(`"size": {"type": "integer"}`), "{size: 1}", ""},
		{"wrong type", closed(`"size": {"type": "integer"}`), "{size: many}", "spec.size: must be of type integer, not \"string\""},
		{"unknown field", closed(`"size": {}`), "{sise: 1}", "spec.sise: unknown field"},
		{"open object", root(`{"type": "object", "properties": {"size": {"type": "integer"}}}`), "{sise: {a: {b: 1}}}", ""},
		{"in an open object", root(`{"type": "object", "properties": {"size": {"type": "integer"}}}`), "{sise: 1, size: a}", "spec.size: must be of type integer, not \"string\""},
		{"object without properties", root(`{"type": "object"}`), "{a: {b: [{c: 1}]}}", ""},
		{"empty schema", closed(`"any": {}`), "{any: [{a: 1}]}", ""},
		{"list of anything", closed(`"any": {"type": "array"}`), "{any: [{a: 1}, 2]}", ""},
		{"unknown field in a list", closed(`"l": {"type": "array", "items": {"type": "object", "properties": {"a": {}}, "additionalProperties": false}}`), "{l: [{a: 1}, {b: 1}]}", "spec.l[1].b: unknown field"},
		{"map", closed(`"m": {"type": "object", "additionalProperties": {"type": "string"}}`), "{m: {a: b}}", ""},
		{"value of a map", closed(`"m": {"type": "object", "additionalProperties": {"type": "string"}}`), "{m: {a: 1}}", "spec.m.a: must be of type string, not \"integer\""},
		{"preserved fields", closed(`"p": {"type": "object", "properties": {"a": {}}, "additionalProperties": false, "x-kubernetes-preserve-unknown-fields": true}`), "{p: {b: 1}}", ""},
		{"required", closed(`"a": {}, "b": {"type": "object", "required": ["c"], "properties": {"c": {"type": "string"}}}`), "{b: {}}", "spec.b.c: required field is missing"},
		{"enum", closed(`"e": {"type": "string", "enum": ["x", "y"]}`), "{e: z}", `spec.e: must be one of "x", "y"`},
		{"const", closed(`"e": {"const": "x"}`), "{e: z}", `spec.e: must be one of "x"`},
		{"int or string", closed(`"p": {"oneOf": [{"type": "string"}, {"type": "integer"}]}`), "{p: http}", ""},
		{"neither int nor string", closed(`"p": {"oneOf": [{"type": "string"}, {"type": "integer"}]}`), "{p: true}", "spec.p: must be of type integer,string, not \"boolean\""},
		{"format int-or-string", closed(`"p": {"type": "string", "format": "int-or-string"}`), "{p: 80}", ""},
		{"nullable", closed(`"s": {"type": ["string", "null"]}`), "{s: null}", ""},
		{"nullable of another type", closed(`"s": {"type": ["string", "null"]}`), "{s: 1}", "spec.s: must be of type string, not \"integer\""},
		{"exclusive bound", closed(`"num": {"type": "integer", "minimum": 3, "exclusiveMinimum": true}`), "{num: 4}", ""},
		{"at an exclusive bound", closed(`"num": {"type": "integer", "minimum": 3, "exclusiveMinimum": true}`), "{num: 3}", "spec.num: should be greater than 3"},
		{"pattern", closed(`"s": {"type": "string", "pattern": "^a+$"}`), "{s: b}", "spec.s: should match '^a+$'"},
		{"reference", strings.TrimSuffix(closed(`"r": {"$ref": "#/definitions/a~1b"}`), "}") + `, "definitions": {"a/b": {"type": "integer"}}}`, "{r: x}", "spec.r: must be of type integer, not \"string\""},
		{"closed alternative", closed(`"o": {"type": "object", "oneOf": [{"properties": {"a": {}}, "required": ["a"], "additionalProperties": false}]}`), "{o: {a: 1, b: 2}}", "must validate one and only one schema"},
		{"rule", closed(`"num": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3", "message": "too many"}]}`), "{num: 3}", "spec.num: too many"},
		{"anything", `{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`, "{a: {b: 1}}", ""},
		{"excluded", closed(`"none": false`), "{none: 1}", "must not validate the schema (not)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := validateWith(t, c.schema, widget+"spec: "+c.spec+"\n")
			var found []string
			for _, p := range v.Problems {
				found = append(found, p.Field+": "+p.Message)
			}
			if text := strings.Join(found, "\n"); v.Unknown != "" || (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("got %q %q, want %q", text, v.Unknown, c.want)
			}
		})
	}
}

// TestPublishedRoot checks the fields that an API server has at the root, and metadata.
func TestPublishedRoot(t *testing.T) {
	t.Parallel()
	text := strings.TrimSuffix(root(`{"type": "object"}`), "}") + `, "required": ["spec", "status"]}`
	for _, c := range []struct{ object, want string }{
		{widget + "spec: {}\nstatus: {num: a}\n", ""},
		{widget + "spec: {}\nsepc: {}\n", "sepc: unknown field"},
		{widget, "spec: required field is missing"},
		{strings.Replace(widget, "name: a", "name: A_b", 1) + "spec: {}\n", "metadata.name: "},
		{strings.Replace(widget, "name: a", "name: a, label: {}", 1) + "spec: {}\n", "metadata.label: unknown field"},
	} {
		v := validateWith(t, text, c.object)
		if got := fmt.Sprint(v.Problems); v.Unknown != "" || (len(v.Problems) == 0) != (c.want == "") || len(v.Problems) > 0 && !strings.HasPrefix(v.Problems[0].Field+": "+v.Problems[0].Message, c.want) {
			t.Errorf("%s: got %s %s, want %q", c.object, got, v.Unknown, c.want)
		}
	}
}

// TestUnusableSchemas checks that a schema whose conditions cannot all be checked makes no object valid.
func TestUnusableSchemas(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"properties": {"a": `, 300) + "{}" + strings.Repeat("}}", 300)
	var wide strings.Builder
	for i := range 20 {
		fmt.Fprintf(&wide, `"d%d": {"properties": {"a": {"$ref": "#/definitions/d%d"}, "b": {"$ref": "#/definitions/d%d"}}}, `, i, i+1, i+1)
	}
	for text, want := range map[string]string{
		`{}`:                                 "it has no properties",
		`{"type": "object"}`:                 "it has no properties",
		`[]`:                                 "not a JSON schema",
		`{"properties": []}`:                 "flux does not support this schema: array as properties",
		`{"properties": {"a": 1}}`:           "flux does not support this schema: number as properties",
		`{"allOf": {}}`:                      "object as allOf",
		`{"properties": {"a": {"type": 1}}}`: "number as properties.type",
		`{"properties": {"a": {"type": ["boolean", "array"]}}}`:    "array as properties.type",
		`{"properties": {"a": {"required": true}}}`:                "bool as properties.required",
		`{"properties": {"a": {"exclusiveMinimum": 1}}}`:           "number as properties.exclusiveMinimum",
		`{"properties": {"a": {"items": [{}]}}}`:                   "'items' must be a schema, but is an array",
		`{"properties": {"a": {"if": {}, "then": {}}}}`:            "keyword if",
		`{"properties": {"a": {"patternProperties": {"^a": {}}}}}`: "'patternProperties' is not supported",
		`{"properties": {"a": {"dependencies": {"a": ["b"]}}}}`:    "'dependencies' is not supported",
		`{"properties": {"a": {"pattern": "(?=a)"}}}`:              "flux does not support this schema: error parsing regexp",
		`{"properties": {"a": {"$ref": "other.json#/a"}}}`:         "refers to another document: other.json#/a",
		`{"properties": {"a": {"$ref": "https://example.com/a"}}}`: "refers to another document: https://example.com/a",
		`{"properties": {"a": {"$ref": "file:///etc/passwd"}}}`:    "refers to another document: file:///etc/passwd",
		`{"properties": {"a": {"$ref": 1}}}`:                       "refers to another document: 1",
		`{"properties": {"a": {"$ref": "#/definitions/b"}}}`:       "refers to #/definitions/b, which it does not contain",
		`{"properties": {"a": {"$ref": "#"}}}`:                     "refers to itself",
		`{"$ref": "#"}`:                                            "refers to itself",
		deep:                                                       "nested more than 200 levels deep",
		`{"definitions": {` + wide.String() + `"d20": {}}, "properties": {"a": {"$ref": "#/definitions/d0"}}}`: "more than 200000 nodes",
	} {
		if v := validateWith(t, text, widget+"spec: {}\n"); !strings.Contains(v.Unknown, want) || len(v.Problems) > 0 {
			t.Errorf("%.100s: got %q %v, want %q", text, v.Unknown, v.Problems, want)
		}
	}
}

// TestPublishedIsTheDefinition compares the verdicts on objects with CustomResourceDefinitions, and with JSON schemas that are
// made of them as tools for kubeconform do it.
func TestPublishedIsTheDefinition(t *testing.T) {
	t.Parallel()
	crds, err := testcluster.Decode(read(t, "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	with, without := verdict.Request{Kubernetes: "1.36"}, verdict.Request{Kubernetes: "1.36"}
	kinds := map[runtimeschema.GroupVersionKind]bool{}
	for _, crd := range append(crds, fluxCRDs(t)...) {
		with.CRDs = append(with.CRDs, encode(t, crd.Object))
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			v := v.(map[string]any)
			root, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema")
			gvk := runtimeschema.GroupVersionKind{Group: group, Version: v["name"].(string), Kind: kind}
			if v["served"] == true && len(root) > 0 {
				closeObjects(root)
				if root[preserveKey] == nil {
					delete(root, "additionalProperties")
				}
				kinds[gvk] = true
				without.Schemas = append(without.Schemas, verdict.Schema{Kind: gvk, Text: encode(t, root)})
			}
		}
	}
	var names []string
	for document := range strings.SplitSeq(string(read(t, "objects.yaml")), "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if kinds[o.GroupVersionKind()] {
			name, _, _ := strings.Cut(document, "\n")
			names, with.Objects = append(names, name), append(with.Objects, encode(t, o.Object))
		}
	}
	without.Objects = with.Objects
	want, err := schema.NewValidator().Validate(t.Context(), with)
	if err != nil {
		t.Fatal(err)
	}
	got, err := schema.NewValidator().Validate(t.Context(), without)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 20 {
		t.Errorf("only %d objects were compared", len(names))
	}
	for i, name := range names {
		if diff := cmp.Diff(want[i].Problems, got[i].Problems, cmpopts.SortSlices(func(a, b verdict.Problem) bool { return a.Field+a.Message < b.Field+b.Message })); diff != "" || got[i].Unknown != "" {
			t.Errorf("%s: %s\n%s", name, got[i].Unknown, diff)
		}
	}
}

const preserveKey = "x-kubernetes-preserve-unknown-fields"

// closeObjects excludes the fields that a schema does not declare.
func closeObjects(value any) {
	switch value := value.(type) {
	case map[string]any:
		if value["properties"] != nil && value["additionalProperties"] == nil || value["type"] == "object" && value["additionalProperties"] == nil && value[preserveKey] == nil {
			value["additionalProperties"] = false
		}
		for _, inner := range value {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range value {
			closeObjects(inner)
		}
	}
}

// FuzzPublished checks that no JSON schema ends the helper process.
func FuzzPublished(f *testing.F) {
	f.Add(root(`{"type": "object", "properties": {"a": {"$ref": "#/properties/kind"}}}`), widget)
	f.Fuzz(func(t *testing.T, text, object string) {
		if encoded, err := yaml.YAMLToJSON([]byte(object)); err == nil && strings.HasPrefix(string(encoded), "{") && json.Valid([]byte(text)) {
			validateWith(t, text, object)
		}
	})
}
