package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Define applies objects on which others stand, such as namespaces and
// definitions, all at once, and does not wait until the server serves what is
// defined: Served does.
func (c *Client) Define(ctx context.Context, objects []*unstructured.Unstructured) error {
	return c.each(ctx, objects, c.applyOne)
}

// Served waits until the server serves the kinds of the definitions among the objects.
func (c *Client) Served(ctx context.Context, objects []*unstructured.Unstructured) error {
	return c.each(ctx, objects, c.established)
}

// Definition tells whether others stand on an object: a namespace or the
// definition of a kind.
func Definition(o *unstructured.Unstructured) bool { return stage(o) == 0 }
