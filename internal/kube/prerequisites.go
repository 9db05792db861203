package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ApplyPrerequisites applies namespaces and CRDs concurrently. It does not wait until the CRDs are
// established; WaitEstablished does.
func (c *Client) ApplyPrerequisites(ctx context.Context, objects []*unstructured.Unstructured) error {
	return c.each(ctx, objects, c.applyOne)
}

// WaitEstablished waits until the CRDs among the objects are established.
func (c *Client) WaitEstablished(ctx context.Context, objects []*unstructured.Unstructured) error {
	return c.each(ctx, objects, c.established)
}

// IsPrerequisite reports whether other objects may depend on an object: it is a namespace or a
// CRD.
func IsPrerequisite(o *unstructured.Unstructured) bool { return stage(o) == 0 }
