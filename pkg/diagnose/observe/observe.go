// Package observe reads the input of a diagnosis from a cluster: Flux objects along their references or by kind, events, pods and
// logs, artifacts, and the objects in an inventory. It reads each of them once and independent ones concurrently, and evaluates
// nothing. It describes unreadable objects, because a diagnosis must not report them as missing.
package observe

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// Cluster reads a cluster and caches data that several root causes may need.
type Cluster struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home string
	// Recording is true if the cluster is a recording, which has an index of some artifacts instead of their files.
	Recording bool

	pods      cache[string, []*corev1.Pod]
	logs      cache[Container, []string]
	events    cache[controllers.ID, []event.Event]
	artifacts cache[controllers.ID, fs.FS]
}

// List calls each with the objects of a built-in kind in a namespace, without their managed fields, and returns the resource
// version of the list.
func (c *Cluster) List(ctx context.Context, apiVersion, kind, namespace string, each func(controllers.Object) error) (string, error) {
	return c.Client.List(ctx, kube.BuiltIn(apiVersion, kind), kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields"}}, each)
}

// eachOf calls each with the selected objects of a Flux kind, in a version that the cluster serves.
func (c *Cluster) eachOf(ctx context.Context, k controllers.Kind, s kube.Selection, each func(controllers.Object) error) error {
	return c.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
		_, err := c.Client.List(ctx, r, s, each)
		return err
	})
}

// Decode converts an object of a built-in kind to its type.
func Decode[T any](o controllers.Object) (*T, error) {
	typed := new(T)
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(o, typed)
}

// KindOf returns the catalog entry for the kind of a Flux object, and an empty entry for other objects.
func KindOf(t controllers.ID) controllers.Kind {
	k, _ := t.Flux()
	return k
}

// Sorted returns objects sorted by name.
func Sorted(objects iter.Seq[controllers.ID]) []controllers.ID {
	return slices.SortedFunc(objects, func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) })
}

// Unread describes a part that could not be read, and why.
func Unread(what string, err error) string { return unreadBecause(err) + ": " + what }

func unreadBecause(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "no permission to read"
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out reading"
	default:
		return "request failed (" + failure.OneLine(err.Error()) + ")"
	}
}

// isAbsent reports whether an object does not exist, or its kind is not installed.
func isAbsent(err error) bool {
	var kindMissing *kube.MissingKindError
	return apierrors.IsNotFound(err) || errors.As(err, &kindMissing)
}

// cache reads each value once, even if it is requested in parallel. It also keeps errors.
type cache[K comparable, V any] struct {
	mu   sync.Mutex
	read map[K]func() (V, error)
}

// get returns the value of a key. It calls read at the first request only.
func (c *cache[K, V]) get(key K, read func() (V, error)) (V, error) {
	c.mu.Lock()
	if c.read == nil {
		c.read = map[K]func() (V, error){}
	}
	once, known := c.read[key]
	if !known {
		once = sync.OnceValues(read)
		c.read[key] = once
	}
	c.mu.Unlock()
	return once()
}
