package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ApplyPrerequisites applies namespaces and CRDs concurrently. It does not wait until the CRDs are
// established; WaitEstablished does.
func ApplyPrerequisites(ctx context.Context, c *Client, objects []*unstructured.Unstructured) error {
	return each(ctx, c, objects, applyOne)
}

// WaitEstablished waits until the CRDs among the objects are established.
func WaitEstablished(ctx context.Context, c *Client, objects []*unstructured.Unstructured) error {
	return each(ctx, c, objects, established)
}

// IsPrerequisite reports whether other objects may depend on an object: it is a namespace or a
// CRD.
func IsPrerequisite(o *unstructured.Unstructured) bool { return stage(o) == 0 }
