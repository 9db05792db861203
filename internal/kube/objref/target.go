package objref

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Target is a Flux object that a command acts on or waits for.
type Target struct {
	Kind            controllers.Kind
	Namespace, Name string
	// Object is the live object, nil if it is not read yet.
	Object controllers.Object
}

func (t Target) String() string { return t.Kind.Kind + " " + t.Namespace + "/" + t.Name }

// Key returns a key that is unique across kinds, also of different API groups.
func (t Target) Key() string { return t.Kind.Group + "/" + t.String() }

// Count returns the number of targets, with their kind if all targets have the
// same kind, as in "3 Kustomization objects".
func Count(targets []Target) string {
	for _, t := range targets {
		if t.Kind.Kind != targets[0].Kind.Kind {
			return fmt.Sprintf("%d objects", len(targets))
		}
	}
	return fmt.Sprintf("%d %s objects", len(targets), targets[0].Kind.Kind)
}

// Named returns the controllers.ID of the object.
func (t Target) Named() controllers.ID {
	return t.Kind.ID(t.Namespace, t.Name)
}

// Read gets the live object unless it was already read.
func (t *Target) Read(ctx context.Context, client *kube.Client) error {
	if t.Object != nil {
		return nil
	}
	o, err := client.GetKind(ctx, t.Kind, t.Namespace, t.Name)
	t.Object = o
	return NotFound(err, *t)
}

// Patch sends a merge patch and returns the patched object.
func (t Target) Patch(ctx context.Context, client *kube.Client, change map[string]any) (patched controllers.Object, err error) {
	err = client.WithServedVersion(ctx, t.Kind, func(r kube.Resource) error {
		patched, err = client.MergePatch(ctx, r, t.Namespace, t.Name, change)
		return err
	})
	return patched, NotFound(err, t)
}

// NotFound replaces a NotFound error of the API server with a NotFoundError.
func NotFound(err error, t Target) error {
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return &NotFoundError{Target: t}
	}
	return err
}
