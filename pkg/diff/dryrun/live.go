package dryrun

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// listThreshold is the number of objects of a kind in a namespace from which one list is cheaper
// than a request for each object.
const listThreshold = 3

// scope is the kind and namespace of one list request.
type scope struct {
	resource  kube.Resource
	namespace string
}

// live reads live objects. It lists objects that already have the labels of the owner by kind and
// namespace, which halves the number of requests. It reads other objects, and objects for which the
// user has no list permission, one by one.
type live struct {
	client *kube.Client
	labels string
	lists  map[scope]func() (map[string]controllers.Object, error)
}

func newLive(ctx context.Context, client *kube.Client, labels string, wanted map[scope]int) *live {
	l := &live{client: client, labels: labels, lists: map[scope]func() (map[string]controllers.Object, error){}}
	for s, n := range wanted {
		if n >= listThreshold {
			l.lists[s] = sync.OnceValues(func() (map[string]controllers.Object, error) { return l.list(ctx, s) })
		}
	}
	return l
}

func (l *live) list(ctx context.Context, s scope) (map[string]controllers.Object, error) {
	found := map[string]controllers.Object{}
	selection := kube.Selection{Namespace: s.namespace, Labels: l.labels, Without: []string{"status"}}
	_, err := l.client.List(ctx, s.resource, selection, func(o controllers.Object) error {
		found[controllers.Name(o)] = o
		return nil
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil // the user may have permission to get single objects
	}
	return found, err
}

// listed returns an object from a list, or nil if it is not in the list.
func (l *live) listed(s scope, name string) (controllers.Object, error) {
	list, ok := l.lists[s]
	if !ok {
		return nil, nil
	}
	found, err := list()
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.resource.Resource, err)
	}
	return found[name], nil
}

// get returns an object, or nil if it does not exist.
func (l *live) get(ctx context.Context, s scope, name string) (controllers.Object, error) {
	o, err := l.client.Get(ctx, s.resource, s.namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}
