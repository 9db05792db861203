package reconcile

import (
	"context"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Subject is an object that is waited for.
type Subject struct {
	Kind            controllers.Kind
	Namespace, Name string
	// Object is how it was found, nil where it was not read yet.
	Object controllers.Object
}

// Target is the subject as a reference names it.
func (s Subject) Target() controllers.Target {
	return controllers.Target{Kind: s.Kind.Kind, Namespace: s.Namespace, Name: s.Name}
}

// String is the subject as messages name it: Kind/namespace/name.
func (s Subject) String() string { return s.Target().String() }

// read gets the object if it was not read yet.
func (s *Subject) read(ctx context.Context, client *kube.Client) error {
	if s.Object != nil {
		return nil
	}
	return client.With(ctx, s.Kind, func(r kube.Resource) (err error) {
		s.Object, err = client.Get(ctx, r, s.Namespace, s.Name)
		return err
	})
}
