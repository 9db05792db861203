package inventory

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
)

// desired is the desired state of an applier, rendered for the check.
type desired struct {
	objects []build.Object
	secrets []string
	release *dryrun.Release
	// defaultNamespace is the namespace of objects without one.
	defaultNamespace string
	// named holds the objects by group, kind and name.
	named map[[3]string][]build.Object
}

// indexed builds the index of the objects and returns d.
func (d *desired) indexed() *desired {
	d.named = map[[3]string][]build.Object{}
	for _, o := range d.objects {
		at := [3]string{o.GroupVersionKind().Group, o.GetKind(), o.GetName()}
		d.named[at] = append(d.named[at], o)
	}
	return d
}

// of returns the rendered object for an entry of the inventory, or nil.
func (d *desired) of(t controllers.ID) []build.Object {
	if d == nil {
		return nil
	}
	for _, o := range d.named[[3]string{t.Group, t.Kind, t.Name}] {
		namespace := o.GetNamespace()
		if namespace == "" {
			namespace = d.defaultNamespace
		}
		if namespace == t.Namespace || t.Namespace == "" {
			return []build.Object{o}
		}
	}
	return nil
}

// expires reports whether an object is deleted after it finishes, such as a Job with a time to live.
func (d *desired) expires(t controllers.ID) bool {
	for _, o := range d.of(t) {
		_, expires := (controllers.Path{"spec.ttlSecondsAfterFinished"}).Lookup(o.Object)
		return expires
	}
	return false
}

// errSuperseded is returned if the source no longer has the applied revision.
var errSuperseded = errors.New("its source no longer has the applied revision")

// render sets the desired state to what the applier last applied: for a Kustomization from the artifact of its source, for a
// HelmRelease from the release storage of Helm. If the state is unknown, it returns the reason, unless the object is being
// reconciled to another revision.
func (k *check) render(ctx context.Context) (unknown []string) {
	var err error
	if k.subject.Kind.Release {
		k.desired, err = released(ctx, k.checker.Cluster, k.subject.Object)
	} else {
		k.desired, err = k.built(ctx)
	}
	switch {
	case err == nil, errors.Is(err, errSuperseded):
		return nil
	case apierrors.IsForbidden(err):
		return []string{"no permission to read the desired state: " + k.subject.String()}
	}
	return []string{fmt.Sprintf("drift of the objects of %s: %s", k.subject, failure.OneLine(failure.WithoutTempDirs(err.Error())))}
}

// built builds a Kustomization from the artifact of its source.
func (k *check) built(ctx context.Context) (*desired, error) {
	sources := k.subject.Kind.SourceOf(k.subject.Object)
	if len(sources) != 1 {
		return nil, errSuperseded
	}
	source := k.checker.Flux[sources[0]]
	if a, ok := artifact.Of(source); !ok || a.Revision != k.subject.Kind.Result.String(k.subject.Object) {
		return nil, errSuperseded
	}
	files, err := k.checker.Cluster.Artifact(ctx, sources[0], source)
	if err != nil {
		return nil, err
	}
	options := build.Options{Lookup: build.LookupFunc(k.checker.Cluster.Data), Kustomizer: k.checker.Kustomizer}
	result, err := build.Kustomization(ctx, files, &unstructured.Unstructured{Object: k.subject.Object}, options)
	if err != nil {
		return nil, err
	}
	found := &desired{objects: result.Objects, secrets: result.SecretValues, defaultNamespace: "default"}
	return found.indexed(), nil
}

// released reads the manifest of the deployed release of a HelmRelease.
func released(ctx context.Context, c *observe.Cluster, o controllers.Object) (*desired, error) {
	hr := &unstructured.Unstructured{Object: o}
	target, err := charts.TargetOf(hr)
	if err != nil {
		return nil, err
	}
	name, storage := target.Name, target.Storage
	if is := (controllers.Path{"status.history[0].name"}).String(o); is != "" {
		name = is
	}
	if is := (controllers.Path{"status.storageNamespace"}).String(o); is != "" {
		storage = is
	}
	release, err := c.Release(ctx, storage, name)
	if err != nil {
		return nil, err
	}
	objects, err := charts.Stored(hr, release.Manifest, nil)
	if err != nil {
		return nil, err
	}
	found := &desired{
		objects: objects, defaultNamespace: release.Namespace,
		release: &dryrun.Release{Name: release.Name, Namespace: release.Namespace, Step: diff.Keep, ClientSide: release.ApplyMethod != "ssa"},
	}
	return found.indexed(), nil
}
