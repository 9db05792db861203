package rehearse

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
		if d := cmp.Diff(want, undeclared(errors.New(message))); d != "" {
			t.Errorf("%s:\n%s", message, d)
		}
	}
	if undeclared(nil) != nil {
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
	got, ok := authored(o)
	if !ok {
		t.Fatal("no manifest")
	}
	if d := cmp.Diff(want, got.Object); d != "" {
		t.Error(d)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	if got, ok := authored(o); ok {
		t.Errorf("an object that nothing has applied has the manifest %v", got)
	}
}

// TestStable checks that messages are equal if they differ in revisions, times and ports only.
func TestStable(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{"applied main@sha1:0123456789abcdef0123456789abcdef01234567 in 1.2s", "applied main@sha1:fedcba9876543210fedcba9876543210fedcba98 in 980ms"},
		{"dial tcp 127.0.0.1:2001: connect: connection refused", "dial tcp 127.0.0.1:2002: connect: connection refused"},
	}
	for _, pair := range same {
		if stable(pair[0]) != stable(pair[1]) {
			t.Errorf("%q and %q differ", pair[0], pair[1])
		}
	}
	different := [][2]string{
		{"timeout waiting for Deployment/a", "timeout waiting for Deployment/b"},
		{"chart version 1.2.0 not found", "chart version 1.3.0 not found"},
		{"dial tcp 10.0.0.1:80: connection refused", "dial tcp 10.0.0.2:80: connection refused"},
	}
	for _, pair := range different {
		if stable(pair[0]) == stable(pair[1]) {
			t.Errorf("%q and %q are the same", pair[0], pair[1])
		}
	}
}
