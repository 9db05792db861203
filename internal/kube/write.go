package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/internal/kube/transport"
	"github.com/fluxkit/flux/pkg/controllers"
)

// FieldManager is the field manager of flux. It is the same as for the Flux CLI, so that an
// upgrade takes over the fields.
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

// Annotate sets annotations on an object. A nil value removes the annotation.
func (c *Client) Annotate(ctx context.Context, r Resource, namespace, name string, annotations map[string]any) (controllers.Object, error) {
	return c.MergePatch(ctx, r, namespace, name, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// Delete deletes an object and, in the background, its dependents. It returns the object if
// finalizers delay its deletion, and nil otherwise.
func (c *Client) Delete(ctx context.Context, r Resource, namespace, name string) (controllers.Object, error) {
	return remove(ctx, c, r, namespace, name, nil)
}

// Kill deletes a pod without a grace period.
func (p Pods) Kill(ctx context.Context, namespace, name string) error {
	_, err := remove(ctx, p.c, podResource(), namespace, name, new(int64))
	return err
}

func remove(ctx context.Context, c *Client, r Resource, namespace, name string, grace *int64) (controllers.Object, error) {
	background := metav1.DeletePropagationBackground
	options, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, PropagationPolicy: &background, GracePeriodSeconds: grace,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the deletion of %s %q: %w", r.Kind, name, err)
	}
	r.ClusterScoped = r.ClusterScoped || namespace == ""
	body, err := transport.Send(ctx, r.locate(c.raw.Delete(), namespace, name).SetHeader("Content-Type", "application/json").Body(options))
	if err != nil {
		return nil, err
	}
	o, err := decode(body, r, name)
	// The server returns a Status for an object that is deleted immediately.
	if err != nil || !Terminating(o) {
		return nil, err
	}
	return o, nil
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
