package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/internal/kube/transport"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/pkg/controllers"
)

// maxRequests is the maximum number of concurrent requests.
const maxRequests = 16

// Apply applies the objects with server-side apply and the field manager of flux, and takes over
// fields of other managers. It applies namespaces and CRDs first and waits until the CRDs are
// established. Objects of the same stage are applied concurrently.
func Apply(ctx context.Context, c *Client, objects []*unstructured.Unstructured) error {
	return applyWith(ctx, c, objects, applyOne)
}

// ApplyEach is like Apply, and calls each with the result for every object, possibly concurrently.
// It sends an additional request for each object.
func ApplyEach(ctx context.Context, c *Client, objects []*unstructured.Unstructured, each func(*unstructured.Unstructured, Upserted)) error {
	return applyWith(ctx, c, objects, func(ctx context.Context, c *Client, o *unstructured.Unstructured) error {
		u, err := Upsert(ctx, c, o, false)
		if err == nil {
			each(o, u)
		}
		return err
	})
}

func applyWith(ctx context.Context, c *Client, objects []*unstructured.Unstructured, do func(context.Context, *Client, *unstructured.Unstructured) error) error {
	for _, stage := range stages(objects) {
		if err := each(ctx, c, stage, do); err != nil {
			return err
		}
		if err := each(ctx, c, stage, established); err != nil {
			return err
		}
	}
	return nil
}

func each(ctx context.Context, c *Client, objects []*unstructured.Unstructured, do func(context.Context, *Client, *unstructured.Unstructured) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for _, o := range objects {
		g.Go(func() error { return do(ctx, c, o) })
	}
	return g.Wait()
}

// Applier configures a server-side apply, which takes over fields of other managers.
type Applier struct {
	// Manager is the field manager.
	Manager string
	// Strict rejects unknown fields.
	Strict bool
	// dryRun makes the server validate the object without storing it.
	dryRun bool
}

// DryRun returns the result of an apply request that the server does not store. If the
// result has no resourceVersion, the object does not exist yet.
func DryRun(ctx context.Context, c *Client, r Resource, o controllers.Object, by Applier) (controllers.Object, error) {
	by.dryRun = true
	return apply(ctx, c, r, o, by)
}

// DryRunReplace returns the object that the server would store if it were replaced, with defaults. Nothing is stored.
func DryRunReplace(ctx context.Context, c *Client, r Resource, o controllers.Object, manager string) (controllers.Object, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", r.Kind, controllers.Name(o), err)
	}
	request := r.locate(c.raw.Put(), controllers.Namespace(o), controllers.Name(o)).Param("dryRun", "All").Param("fieldManager", manager)
	if body, err = transport.Send(ctx, request.SetHeader("Content-Type", "application/json").Body(body)); err != nil {
		return nil, err
	}
	return decode(body, r, controllers.Name(o))
}

func apply(ctx context.Context, c *Client, r Resource, o controllers.Object, by Applier) (controllers.Object, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", r.Kind, controllers.Name(o), err)
	}
	request := r.locate(c.raw.Patch(types.ApplyPatchType), controllers.Namespace(o), controllers.Name(o)).
		Param("force", "true").Param("fieldManager", by.Manager)
	if by.dryRun {
		request = request.Param("dryRun", "All")
	}
	if by.Strict {
		request = request.Param("fieldValidation", "Strict")
	}
	// The server parses the body as YAML, which does not allow some control characters that JSON allows.
	body, err = transport.Send(ctx, request.Body([]byte(printable.JSON(string(body)))))
	if err != nil {
		return nil, err
	}
	return decode(body, r, controllers.Name(o))
}

func applyOne(ctx context.Context, c *Client, o *unstructured.Unstructured) error {
	if _, err := apply(ctx, c, ResourceFor(o.GroupVersionKind()), o.Object, Applier{Manager: FieldManager}); err != nil {
		return fmt.Errorf("applying %s: %w", Describe(o), err)
	}
	return nil
}

// established waits until a CRD is established.
func established(ctx context.Context, c *Client, o *unstructured.Unstructured) error {
	if o.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	err := c.Follow(ctx, ResourceFor(o.GroupVersionKind()), Selection{Name: o.GetName()}, "", func(e Event) (bool, error) {
		condition, ok := controllers.FindCondition(e.Object, "Established")
		return ok && condition.Status == "True", nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CustomResourceDefinition %s to be established: %w", o.GetName(), err)
	}
	return nil
}

// stages groups objects that can be applied together and returns the groups in the order to apply them.
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
		return 2 // Pods depend on ServiceAccounts, RBAC and quotas
	default:
		return 1
	}
}

// Describe returns Kind/namespace/name, or Kind/name for a cluster-scoped object.
func Describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
}

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
