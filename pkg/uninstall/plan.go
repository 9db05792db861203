// Package uninstall removes Flux from a cluster: the controllers, the Flux resources in all
// namespaces, the CRDs and the namespace. Objects that Flux has deployed are kept.
package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// installedKinds lists the kinds of an installation in the order of removal: Deployments before the
// objects that they use.
var installedKinds = []struct{ apiVersion, kind string }{
	{"apps/v1", "Deployment"},
	{"v1", "Service"},
	{"networking.k8s.io/v1", "NetworkPolicy"},
	{"v1", "ServiceAccount"},
	{"v1", "ResourceQuota"},
	{"rbac.authorization.k8s.io/v1", "ClusterRole"},
	{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
}

// Target is an object to remove.
type Target struct {
	Resource kube.Resource
	Object   controllers.Object
}

// String returns Kind/namespace/name.
func (t Target) String() string {
	if namespace := controllers.Namespace(t.Object); namespace != "" {
		return t.Resource.Kind + "/" + namespace + "/" + controllers.Name(t.Object)
	}
	return t.Resource.Kind + "/" + controllers.Name(t.Object)
}

// Held reports whether the object has finalizers of Flux controllers.
func (t Target) Held() bool {
	return slices.ContainsFunc(kube.Finalizers(t.Object), kube.OwnFinalizer)
}

// foreign returns the finalizers of other controllers.
func (t Target) foreign() []string {
	return slices.DeleteFunc(kube.Finalizers(t.Object), kube.OwnFinalizer)
}

// Plan contains the objects to remove.
type Plan struct {
	Namespace string
	// Components holds the controllers and the objects that they use, and Objects the Flux resources.
	Components, Objects, CRDs []Target
	// namespaceObject is nil if the namespace is kept.
	namespaceObject controllers.Object
}

// NewPlan lists the objects of the installation in a namespace by their labels,
// because names differ between versions.
func NewPlan(ctx context.Context, client *kube.Client, namespace string, keepNamespace bool) (*Plan, error) {
	plan := &Plan{Namespace: namespace}
	components := make([][]Target, len(installedKinds))
	g, gctx := errgroup.WithContext(ctx)
	for i, k := range installedKinds {
		g.Go(func() (err error) {
			r := kube.BuiltIn(k.apiVersion, k.kind)
			components[i], err = targets(gctx, client, r, selectionOf(r, namespace))
			return err
		})
	}
	g.Go(func() error { return plan.findCRDs(gctx, client) })
	if !keepNamespace {
		g.Go(func() error { return plan.findNamespace(gctx, client) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	plan.Components = slices.Concat(components...)
	return plan, nil
}

func selectionOf(r kube.Resource, namespace string) kube.Selection {
	s := kube.Selection{Namespace: namespace, Labels: kube.InstanceSelector(namespace)}
	if r.ClusterScoped {
		s.Namespace = ""
	}
	return s
}

func targets(ctx context.Context, client *kube.Client, r kube.Resource, s kube.Selection) ([]Target, error) {
	var found []Target
	_, err := client.List(ctx, r, s, func(o controllers.Object) error {
		// Specs can be large and are not needed.
		delete(o, "spec")
		found = append(found, Target{r, o})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the objects of kind %s: %w", r.Kind, err)
	}
	slices.SortFunc(found, func(a, b Target) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// findCRDs lists the CRDs and, in all namespaces, their objects.
func (p *Plan) findCRDs(ctx context.Context, client *kube.Client) error {
	var kinds []kube.Resource
	_, err := client.List(ctx, kube.CRDs(), selectionOf(kube.CRDs(), p.Namespace), func(crd controllers.Object) error {
		if !isFluxCRD(crd) {
			return nil
		}
		p.CRDs = append(p.CRDs, Target{kube.CRDs(), crd})
		field := func(path string) string { return controllers.Path{path}.String(crd) }
		for _, version := range kube.ServedVersions(crd) {
			// Each served version has all objects.
			kinds = append(kinds, kube.Resource{
				GroupVersionResource: schema.GroupVersionResource{Group: field("spec.group"), Version: version, Resource: field("spec.names.plural")},
				Kind:                 field("spec.names.kind"),
			})
			break
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
	}
	slices.SortFunc(p.CRDs, func(a, b Target) int { return strings.Compare(a.String(), b.String()) })
	slices.SortStableFunc(kinds, func(a, b kube.Resource) int { return rank(a) - rank(b) })
	objects := make([][]Target, len(kinds))
	g, ctx := errgroup.WithContext(ctx)
	for i, r := range kinds {
		g.Go(func() (err error) {
			objects[i], err = targets(ctx, client, r, kube.Selection{})
			if kube.NotServed(err) {
				return nil // a CRD that is being deleted may not be served
			}
			return err
		})
	}
	err = g.Wait()
	p.Objects = slices.Concat(objects...)
	return err
}

func isFluxCRD(crd controllers.Object) bool {
	return kube.IsFluxGroup(controllers.Path{"spec.group"}.String(crd))
}

// rank returns the position of a kind in the catalog. Unknown kinds are last.
func rank(r kube.Resource) int {
	i := slices.IndexFunc(controllers.Kinds, func(k controllers.Kind) bool { return k.Group == r.Group && k.Kind == r.Kind })
	if i < 0 {
		return len(controllers.Kinds)
	}
	return i
}

// findNamespace reads the namespace if it is part of the installation.
func (p *Plan) findNamespace(ctx context.Context, client *kube.Client) error {
	o, err := client.Find(ctx, kube.BuiltIn("v1", "Namespace"), p.Namespace)
	p.namespaceObject = o
	return err
}

// Empty reports whether Flux is not installed. A namespace alone counts as an installation only if
// it has the Flux labels.
func (p *Plan) Empty() bool {
	return len(p.Components)+len(p.CRDs) == 0 && (p.namespaceObject == nil || kube.Label(p.namespaceObject, kube.PartOfLabel) != "flux")
}

// RemovesNamespace reports whether the plan removes the namespace.
func (p *Plan) RemovesNamespace() bool { return p.namespaceObject != nil }

// All returns the targets in the order of their results.
func (p *Plan) All() []Target {
	all := slices.Concat(p.Components, p.Objects, p.CRDs)
	if p.RemovesNamespace() {
		all = append(all, p.namespaceTarget())
	}
	return all
}

func (p *Plan) namespaceTarget() Target {
	return Target{kube.BuiltIn("v1", "Namespace"), p.namespaceObject}
}

// Allowed returns an error for a plan that would remove more than Flux, or objects
// that flux-operator would install again.
func (p *Plan) Allowed() error {
	for _, t := range p.Components {
		if name := kube.Label(t.Object, controllers.OperatorGroup+"/name"); t.Resource.Kind == "Deployment" && name != "" {
			instance := controllers.ID{Group: controllers.OperatorGroup, Kind: controllers.FluxInstance, Namespace: kube.Label(t.Object, controllers.OperatorGroup+"/namespace"), Name: name}
			return hint.Errorf(fmt.Sprintf("delete the FluxInstance (objects that Flux has deployed are kept): kubectl delete fluxinstances.%s %s --namespace %s", instance.Group, hint.Quote(name), hint.Quote(instance.Namespace)),
				"flux-operator installs Flux in namespace %q for %s, and would install it again", p.Namespace, instance)
		}
	}
	if p.RemovesNamespace() && protected(p.Namespace) {
		return hint.Errorf("remove only Flux with --keep-namespace", "namespace %q cannot be removed: it is a system namespace", p.Namespace)
	}
	return nil
}

// Permissions returns the permissions that the plan requires.
func (p *Plan) Permissions() []kube.Permission {
	var all []kube.Permission
	need := func(r kube.Resource, namespace string, verbs ...string) {
		for _, verb := range verbs {
			permission := kube.Permission{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: namespace}
			if !slices.Contains(all, permission) {
				all = append(all, permission)
			}
		}
	}
	for _, t := range p.Components {
		need(t.Resource, controllers.Namespace(t.Object), "delete")
	}
	need(kube.BuiltIn("v1", "Pod"), p.Namespace, "list", "watch")
	for _, t := range p.Objects {
		if t.Held() {
			need(t.Resource, controllers.Namespace(t.Object), "patch")
		}
	}
	if len(p.CRDs) > 0 {
		need(kube.CRDs(), "", "delete", "watch")
	}
	if p.RemovesNamespace() {
		need(kube.BuiltIn("v1", "Namespace"), "", "delete", "list", "watch")
	}
	return all
}

// protected reports whether a namespace must not be removed: a system namespace, or default.
func protected(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// WarnOfFinalizers warns about objects with other controllers' finalizers, which delay the
// deletion.
func (p *Plan) WarnOfFinalizers(progress Progress) {
	for _, t := range p.Objects {
		if foreign := t.foreign(); len(foreign) > 0 {
			progress.Warning("%s has finalizers of other controllers, which must remove them: %s", t, strings.Join(foreign, ", "))
		}
	}
}
