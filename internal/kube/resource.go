package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube/transport"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Of returns the resource of a kind in the catalog, at its newest version.
func Of(k controllers.Kind) Resource {
	return Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource},
		Kind:                 k.Kind,
	}
}

// clusterScoped lists the built-in cluster-scoped kinds that flux handles.
var clusterScoped = []string{
	"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
	"StorageClass", "PriorityClass", "IngressClass", "RuntimeClass", "APIService",
	"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
}

// ResourceFor derives the resource of a kind from the Kubernetes naming conventions, without a
// request. It is correct for Flux and built-in kinds.
func ResourceFor(gvk schema.GroupVersionKind) Resource {
	if k, ok := controllers.KindOf(gvk.Group, gvk.Kind); ok {
		r := Of(k)
		r.Version = gvk.Version
		return r
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return Resource{GroupVersionResource: plural, Kind: gvk.Kind, ClusterScoped: slices.Contains(clusterScoped, gvk.Kind)}
}

// versions caches discovered groups and the served versions of kinds that WithServedVersion has determined.
type versions struct {
	mu     sync.Mutex
	groups map[string]metav1.APIGroup
	served map[string]string

	operator   sync.Once
	noOperator bool
}

func (v *versions) of(k controllers.Kind) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	version, ok := v.served[k.CRD()]
	return version, ok
}

func (v *versions) remember(k controllers.Kind, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.served == nil {
		v.served = map[string]string{}
	}
	v.served[k.CRD()] = version
}

// NotServed reports whether an error means that the server does not serve the resource, as
// opposed to a missing object.
func NotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) ||
		meta.IsNoMatchError(err)
}

// MissingKindError is returned if the cluster does not serve any supported version of a kind.
type MissingKindError struct{ Kind controllers.Kind }

func (e *MissingKindError) Error() string {
	return fmt.Sprintf("the cluster does not serve %s: the CustomResourceDefinition %s is not installed", e.Kind.Kind, e.Kind.CRD())
}

// WithServedVersion calls do with the newest version of a kind and, if the server does not serve it, with the newest
// served version, which it caches. For a kind that supported versions of Flux serve in different versions, the first
// request of do requests both versions at the same time. For users without permissions, an API server returns
// Forbidden even if it does not serve the group, so a forbidden kind of flux-operator may not be installed.
func (c *Client) WithServedVersion(ctx context.Context, k controllers.Kind, do func(Resource) error) error {
	r := Of(k)
	version, known := c.served.of(k)
	switch {
	case known:
		r.Version = version
	case k.Portable != "":
		r.both = &pair{older: k.Portable}
		defer r.both.discard()
	}
	err := do(r)
	if apierrors.IsForbidden(err) && k.Controller == controllers.OperatorName && c.served.withoutOperator(ctx, c.raw) {
		return &MissingKindError{k}
	}
	if !NotServed(err) {
		if r.both != nil && (err == nil || apierrors.IsNotFound(err)) {
			c.served.remember(k, r.Version)
		}
		return err
	}
	if r.both.keeps() {
		r.Version = k.Portable
		c.served.remember(k, r.Version)
		if err = do(r); !NotServed(err) {
			return err
		}
	}
	versions, err := c.served.olderOf(ctx, c.raw, k)
	if err != nil {
		return err
	}
	for _, version := range versions {
		r.Version = version
		if err := do(r); !NotServed(err) {
			c.served.remember(k, version)
			return err
		}
	}
	return &MissingKindError{k}
}

// GetKind returns an object of a kind in the catalog, in a version that the server serves.
func (c *Client) GetKind(ctx context.Context, k controllers.Kind, namespace, name string) (o controllers.Object, err error) {
	err = c.WithServedVersion(ctx, k, func(r Resource) (err error) {
		o, err = c.Get(ctx, r, namespace, name)
		return err
	})
	return o, err
}

// olderOf returns the older versions of a kind that the server serves for the kind's API group.
// Only a request shows whether they include the kind.
func (v *versions) olderOf(ctx context.Context, raw rest.Interface, k controllers.Kind) ([]string, error) {
	if len(k.Older) == 0 {
		return nil, nil
	}
	group, err := v.group(ctx, raw, k.Group)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(k.Older), func(version string) bool {
		return !slices.ContainsFunc(group.Versions, func(served metav1.GroupVersionForDiscovery) bool { return served.Version == version })
	}), nil
}

// withoutOperator reports whether the server does not serve the kinds of flux-operator. It is false if that is unknown.
func (v *versions) withoutOperator(ctx context.Context, raw rest.Interface) bool {
	v.operator.Do(func() {
		_, err := v.group(ctx, raw, controllers.OperatorGroup)
		v.noOperator = apierrors.IsNotFound(err)
	})
	return v.noOperator
}

func (v *versions) group(ctx context.Context, raw rest.Interface, name string) (metav1.APIGroup, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if g, ok := v.groups[name]; ok {
		return g, nil
	}
	body, err := transport.Send(ctx, raw.Get().AbsPath("/apis", name))
	if err != nil {
		return metav1.APIGroup{}, fmt.Errorf("discovering the versions of %s: %w", name, err)
	}
	var g metav1.APIGroup
	if err := json.Unmarshal(body, &g); err != nil {
		return metav1.APIGroup{}, fmt.Errorf("reading the versions of %s: %w", name, err)
	}
	if v.groups == nil {
		v.groups = map[string]metav1.APIGroup{}
	}
	v.groups[name] = g
	return g, nil
}
