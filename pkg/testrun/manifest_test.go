package testrun

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestUndeclared has the messages of a Kubernetes 1.36 API server, and messages with the same words.
func TestUndeclared(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][]string{
		`failed to create typed patch object (flux-system/on-call; notification.toolkit.fluxcd.io/v1, Kind=Alert): .spec.summary: field not declared in schema`:         {"spec.summary"},
		"failed to create typed patch object (a/b; x/v1, Kind=C): errors:\n  .spec.interval: field not declared in schema\n  .spec.proxy: field not declared in schema": {"spec.interval", "spec.proxy"},
		`strict decoding error: unknown field "spec.summary", unknown field "spec.proxy"`:                                                                               {"spec.summary", "spec.proxy"},
		`Alert.notification.toolkit.fluxcd.io "field not declared in schema" not found`:                                                                                 nil,
		`spec.summary: Invalid value: "unknown field": too long`:                                                                                                        nil,
	} {
		if d := cmp.Diff(want, Undeclared(errors.New(message))); d != "" {
			t.Errorf("%s:\n%s", message, d)
		}
	}
	if Undeclared(nil) != nil {
		t.Error("no error has fields")
	}
}

// TestAuthored checks that a manifest has what its applier owns: neither defaults nor the fields of
// others, and the API version in which it was applied.
func TestAuthored(t *testing.T) {
	t.Parallel()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "x/v1", "kind": "Alert",
		"metadata": map[string]any{
			"name": "a", "namespace": "b", "uid": "1", "labels": map[string]any{"mine": "1", "theirs": "2"},
			"managedFields": []any{
				map[string]any{"manager": "controller", "operation": "Update", "subresource": "status", "apiVersion": "x/v1", "fieldsV1": map[string]any{"f:status": map[string]any{}}},
				map[string]any{"manager": "kustomize-controller", "operation": "Apply", "apiVersion": "x/v1beta3", "fieldsV1": map[string]any{
					"f:metadata": map[string]any{"f:labels": map[string]any{"f:mine": map[string]any{}}},
					"f:spec":     map[string]any{"f:list": map[string]any{}, "f:ref": map[string]any{"f:name": map[string]any{}}},
				}},
			},
		},
		"spec":   map[string]any{"list": []any{"1"}, "ref": map[string]any{"name": "r", "kind": "default"}, "interval": "default"},
		"status": map[string]any{"ready": true},
	}}
	want := map[string]any{
		"apiVersion": "x/v1beta3", "kind": "Alert",
		"metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"mine": "1"}},
		"spec":     map[string]any{"list": []any{"1"}, "ref": map[string]any{"name": "r"}},
	}
	got, ok := Applied(o)
	if !ok {
		t.Fatal("no manifest")
	}
	if d := cmp.Diff(want, got.Object); d != "" {
		t.Error(d)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	if got, ok := Applied(o); ok {
		t.Errorf("an object that nothing has applied has the manifest %v", got)
	}
}
