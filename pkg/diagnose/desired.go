package diagnose

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// desired is the desired state of an applier, which is rendered again.
type desired struct {
	objects []build.Object
	secrets []string
	release *diff.Release
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

// errSuperseded is returned if the source no longer has the applied revision.
var errSuperseded = errors.New("its source no longer has the applied revision")

// desiredOf renders the objects that an applier last applied: for a Kustomization from the artifact
// of its source, for a HelmRelease from the release storage of Helm.
func (s *contents) desiredOf(ctx context.Context, sub subject) (*desired, error) {
	if sub.kind.Release {
		return s.released(ctx, sub)
	}
	sources := sub.kind.SourceOf(sub.object)
	if len(sources) != 1 {
		return nil, errSuperseded
	}
	source := s.objects[sources[0]]
	a, ok := artifact.Of(source)
	if !ok || a.Revision != sub.kind.Result.String(sub.object) {
		return nil, errSuperseded
	}
	archive, err := artifact.Fetch(ctx, s.Client, a, s.Home)
	if err != nil {
		return nil, err
	}
	files, err := build.Archive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	built, err := build.Kustomization(ctx, files, &unstructured.Unstructured{Object: sub.object}, build.Options{Lookup: build.LookupFunc(s.data), Kustomizer: s.Kustomizer})
	if err != nil {
		return nil, err
	}
	found := &desired{objects: built.Objects, secrets: built.SecretValues, defaultNamespace: "default"}
	return found.indexed(), nil
}

// data reads the ConfigMap or Secret of a substitution.
func (s *contents) data(ctx context.Context, ref controllers.ID) (map[string][]byte, error) {
	o, err := s.Client.Get(ctx, resource(corev1.SchemeGroupVersion, ref.Kind), ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, build.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return build.DataOf(&unstructured.Unstructured{Object: o})
}

// released reads the manifest of the deployed release.
func (s *contents) released(ctx context.Context, sub subject) (*desired, error) {
	hr := &unstructured.Unstructured{Object: sub.object}
	target, err := build.TargetOf(hr)
	if err != nil {
		return nil, err
	}
	name, storage := target.Name, target.Storage
	if is := sub.text("status.history[0].name"); is != "" {
		name = is
	}
	if is := sub.text("status.storageNamespace"); is != "" {
		storage = is
	}
	history, err := helm.Read(ctx, s.Client, storage, name)
	if err != nil {
		return nil, err
	}
	if history == nil || history.Deployed == nil {
		return nil, fmt.Errorf("no deployed revision of release %s/%s in the storage of Helm", storage, name)
	}
	deployed := history.Deployed
	objects, err := build.Stored(hr, deployed.Manifest, nil)
	if err != nil {
		return nil, err
	}
	found := &desired{
		objects: objects, defaultNamespace: deployed.Namespace,
		release: &diff.Release{Name: deployed.Name, Namespace: deployed.Namespace, Step: diff.Keep, ClientSide: deployed.ApplyMethod != "ssa"},
	}
	return found.indexed(), nil
}

// of returns the rendered object for an entry of the inventory.
func (d *desired) of(t controllers.ID) (build.Object, bool) {
	for _, o := range d.named[[3]string{t.Group, t.Kind, t.Name}] {
		namespace := o.GetNamespace()
		if namespace == "" {
			namespace = d.defaultNamespace
		}
		if namespace == t.Namespace || t.Namespace == "" {
			return o, true
		}
	}
	return build.Object{}, false
}
