package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/pkg/controllers"
)

// FieldManager is the field manager of flux, the same as that of the Flux CLI, so that an upgrade
// takes over its fields.
const FieldManager = "flux"

// MergePatch changes an object with a JSON merge patch (RFC 7396).
func (c *Client) MergePatch(ctx context.Context, r Resource, namespace, name string, change any) (controllers.Object, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encoding the change of %s %q: %w", r.Kind, name, err)
	}
	u, err := c.collection(r, namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, err
	}
	return u.Object, nil
}

// Annotate sets annotations of an object; a nil value removes the annotation.
func (c *Client) Annotate(ctx context.Context, r Resource, namespace, name string, annotations map[string]any) (controllers.Object, error) {
	return c.MergePatch(ctx, r, namespace, name, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// Delete deletes an object and, in the background, its dependents.
func (c *Client) Delete(ctx context.Context, r Resource, namespace, name string) error {
	background := metav1.DeletePropagationBackground
	return c.collection(r, namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
}

// PatchStatus patches the status subresource of an object.
func (c *Client) PatchStatus(ctx context.Context, r Resource, namespace, name string, status any) error {
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of %s %q: %w", r.Kind, name, err)
	}
	_, err = c.collection(r, namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}
