package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
)

// atOnce bounds the requests that are under way at the same time.
const atOnce = 16

// Apply makes the cluster have the objects, by server-side apply under the
// name of flux, taking over fields that others own. What others stand on
// (namespaces, definitions) goes first, and definitions are waited for until
// the server serves them; within a stage requests go out together.
func (c *Client) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	return c.applyWith(ctx, objects, c.applyOne)
}

// ApplyEach is Apply, and calls each with what has become of every object. It
// costs one request more for an object. each may be called concurrently.
func (c *Client) ApplyEach(ctx context.Context, objects []*unstructured.Unstructured, each func(*unstructured.Unstructured, Upserted)) error {
	return c.applyWith(ctx, objects, func(ctx context.Context, o *unstructured.Unstructured) error {
		u, err := c.Upsert(ctx, o, false)
		if err == nil {
			each(o, u)
		}
		return err
	})
}

func (c *Client) applyWith(ctx context.Context, objects []*unstructured.Unstructured, apply func(context.Context, *unstructured.Unstructured) error) error {
	for _, stage := range stages(objects) {
		if err := c.each(ctx, stage, apply); err != nil {
			return err
		}
		if err := c.each(ctx, stage, c.established); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) each(ctx context.Context, objects []*unstructured.Unstructured, do func(context.Context, *unstructured.Unstructured) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, o := range objects {
		g.Go(func() error { return do(ctx, o) })
	}
	return g.Wait()
}

// applyBody encodes an object to be applied. The server reads it as YAML, which
// does not allow control characters that JSON leaves as they are.
func applyBody(object any) ([]byte, error) {
	body, err := json.Marshal(object)
	return []byte(printable.JSON(string(body))), err
}

func (c *Client) applyOne(ctx context.Context, o *unstructured.Unstructured) error {
	body, err := applyBody(o.Object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", Describe(o), err)
	}
	force := true
	_, err = c.collection(Guess(o.GroupVersionKind()), o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: FieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("applying %s: %w", Describe(o), err)
	}
	return nil
}

// established waits until the server serves the kind that a definition defines.
func (c *Client) established(ctx context.Context, o *unstructured.Unstructured) error {
	if o.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	err := c.Follow(ctx, Guess(o.GroupVersionKind()), Selection{Name: o.GetName()}, "", func(e Event) (bool, error) {
		condition, ok := controllers.FindCondition(e.Object, "Established")
		return ok && condition.Status == "True", nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the server serves %s: %w", o.GetName(), err)
	}
	return nil
}

// stages groups objects by what has to be there before the next group.
func stages(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int { return cmp.Compare(stage(a), stage(b)) })
	var groups [][]*unstructured.Unstructured
	for i, o := range sorted {
		if i == 0 || stage(o) != stage(sorted[i-1]) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], o)
	}
	return groups
}

func stage(o *unstructured.Unstructured) int {
	if _, ok := controllers.KindOf(o.GroupVersionKind().Group, o.GetKind()); ok {
		return 3
	}
	switch o.GetKind() {
	case "Namespace", "CustomResourceDefinition":
		return 0
	case "Deployment":
		return 2 // pods need their service account, role and quota
	default:
		return 1
	}
}

// Describe names an object for people: Kind/namespace/name.
func Describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
}
