package desired

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Cluster is the cluster from which live objects are read.
type Cluster struct {
	// Connect returns the client. It is called on the first read.
	Connect func() (*kube.Client, error)
	// FluxNamespace is the namespace of the controllers.
	FluxNamespace string
}

// LiveObject reads an object of a Flux kind.
func (c Cluster) LiveObject(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := c.Connect()
	if err != nil {
		return nil, err
	}
	k, known := controllers.FindKind(kind)
	if !known {
		return nil, fmt.Errorf("%s is not a Flux kind", kind)
	}
	t := objref.Target{Kind: k, Namespace: namespace, Name: name}
	if err := t.Read(ctx, client); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: t.Object}, nil
}

// LiveOrNil returns the live object, or nil if it does not exist.
func (c Cluster) LiveOrNil(ctx context.Context, ref controllers.ID) (*unstructured.Unstructured, error) {
	live, err := c.LiveObject(ctx, ref.Kind, ref.Namespace, ref.Name)
	var absent *objref.NotFoundError
	if errors.As(err, &absent) {
		return nil, nil
	}
	return live, err
}

// Data returns the data of a ConfigMap or Secret.
func (c Cluster) Data(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
	client, err := c.Connect()
	if err != nil {
		return nil, err
	}
	found, err := client.Get(ctx, kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: object.Kind}), object.Namespace, object.Name)
	if apierrors.IsNotFound(err) {
		return nil, build.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return build.DataOf(&unstructured.Unstructured{Object: found})
}

// Text returns the string at a field path, or "" if the field is not set.
func Text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}
