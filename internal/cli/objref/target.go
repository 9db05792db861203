package objref

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// Target is one object that a verb acts on.
type Target struct {
	Kind            controllers.Kind
	Namespace, Name string
	// Object is how it was found, nil where nobody has looked yet.
	Object controllers.Object
}

func (t Target) String() string { return t.Kind.Kind + " " + t.Namespace + "/" + t.Name }

// Key tells objects of different kinds apart, too.
func (t Target) Key() string { return t.String() }

// Named is the target as pkg/controllers names objects.
func (t Target) Named() controllers.Target {
	return controllers.Target{Kind: t.Kind.Kind, Namespace: t.Namespace, Name: t.Name}
}

// Read fills in the object of a target that nobody has looked at yet.
func (t *Target) Read(ctx context.Context, client *kube.Client) error {
	if t.Object != nil {
		return nil
	}
	o, err := client.GetKind(ctx, t.Kind, t.Namespace, t.Name)
	t.Object = o
	return NotFound(err, *t)
}

// NotFound puts "not found" into the words that people know.
func NotFound(err error, t Target) error {
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return &NotFoundError{Target: t}
	}
	return err
}

// Subject returns the object as pkg/reconcile takes it.
func (t Target) Subject() reconcile.Subject {
	return reconcile.Subject{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, Object: t.Object}
}

// OfSubject returns the object of a subject of pkg/reconcile.
func OfSubject(s reconcile.Subject) Target {
	return Target{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Object: s.Object}
}
