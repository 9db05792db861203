package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// installedKinds are the kinds of an installation in the order of removal:
// Deployments before the objects that they use.
var installedKinds = []struct{ apiVersion, kind string }{
	{"apps/v1", "Deployment"},
	{"v1", "Service"},
	{"networking.k8s.io/v1", "NetworkPolicy"},
	{"v1", "ServiceAccount"},
	{"v1", "ResourceQuota"},
	{"rbac.authorization.k8s.io/v1", "ClusterRole"},
	{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
}

// target is an object to remove.
type target struct {
	resource kube.Resource
	object   controllers.Object
}

// String returns Kind/namespace/name.
func (t target) String() string {
	if namespace := controllers.Namespace(t.object); namespace != "" {
		return t.resource.Kind + "/" + namespace + "/" + controllers.Name(t.object)
	}
	return t.resource.Kind + "/" + controllers.Name(t.object)
}

func (t target) result(result string) report.ChangeResult {
	return report.ChangeResult{Kind: t.resource.Kind, Namespace: controllers.Namespace(t.object), Name: controllers.Name(t.object), Result: result}
}

// held reports whether the object has finalizers of Flux controllers.
func (t target) held() bool {
	return slices.ContainsFunc(kube.Finalizers(t.object), kube.OwnFinalizer)
}

// foreign returns the finalizers of other controllers.
func (t target) foreign() []string {
	return slices.DeleteFunc(kube.Finalizers(t.object), kube.OwnFinalizer)
}

// plan has the objects to remove.
type plan struct {
	namespace       string
	namespaceObject controllers.Object // nil if the namespace is kept
	components      []target
	crds            []target
	objects         []target
}

// newPlan lists the objects of the installation in a namespace by their labels,
// because names differ between versions.
func newPlan(ctx context.Context, client *kube.Client, namespace string, keepNamespace bool) (*plan, error) {
	plan := &plan{namespace: namespace}
	components := make([][]target, len(installedKinds))
	g, gctx := errgroup.WithContext(ctx)
	for i, k := range installedKinds {
		g.Go(func() (err error) {
			r := installation.BuiltIn(k.apiVersion, k.kind)
			components[i], err = targets(gctx, client, r, selectionOf(r, namespace))
			return err
		})
	}
	g.Go(func() error { return plan.findDefinitions(gctx, client) })
	if !keepNamespace {
		g.Go(func() error { return plan.findNamespace(gctx, client) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	plan.components = slices.Concat(components...)
	return plan, nil
}

func selectionOf(r kube.Resource, namespace string) kube.Selection {
	s := kube.Selection{Namespace: namespace, Labels: kube.InstanceSelector(namespace)}
	if r.ClusterScoped {
		s.Namespace = ""
	}
	return s
}

func targets(ctx context.Context, client *kube.Client, r kube.Resource, s kube.Selection) ([]target, error) {
	var found []target
	_, err := client.List(ctx, r, s, func(o controllers.Object) error {
		// Specs can be large and are not needed.
		delete(o, "spec")
		found = append(found, target{r, o})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the objects of kind %s: %w", r.Kind, err)
	}
	slices.SortFunc(found, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// findDefinitions lists the CRDs and, in all namespaces, their objects.
func (p *plan) findDefinitions(ctx context.Context, client *kube.Client) error {
	var kinds []kube.Resource
	_, err := client.List(ctx, installation.CRDs(), selectionOf(installation.CRDs(), p.namespace), func(crd controllers.Object) error {
		if !ownDefinition(crd) {
			return nil
		}
		p.crds = append(p.crds, target{installation.CRDs(), crd})
		field := func(path string) string { return controllers.Path{path}.String(crd) }
		for _, version := range installation.ServedVersions(crd) {
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
	slices.SortFunc(p.crds, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	slices.SortStableFunc(kinds, func(a, b kube.Resource) int { return rank(a) - rank(b) })
	objects := make([][]target, len(kinds))
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
	p.objects = slices.Concat(objects...)
	return err
}

func ownDefinition(crd controllers.Object) bool {
	return kube.IsFluxGroup(controllers.Path{"spec.group"}.String(crd))
}

// rank returns the position of a kind in the catalogue. Unknown kinds are last.
func rank(r kube.Resource) int {
	i := slices.IndexFunc(controllers.Kinds, func(k controllers.Kind) bool { return k.Group == r.Group && k.Kind == r.Kind })
	if i < 0 {
		return len(controllers.Kinds)
	}
	return i
}

// findNamespace reads the namespace if it is part of the installation.
func (p *plan) findNamespace(ctx context.Context, client *kube.Client) error {
	o, err := installation.Find(ctx, client, installation.BuiltIn("v1", "Namespace"), p.namespace)
	p.namespaceObject = o
	return err
}

// empty reports whether nothing of Flux is installed. A namespace alone counts
// only if it has the labels of Flux.
func (p *plan) empty() bool {
	return len(p.components)+len(p.crds) == 0 && (p.namespaceObject == nil || kube.Label(p.namespaceObject, kube.PartOfLabel) != "flux")
}

func (p *plan) removesNamespace() bool { return p.namespaceObject != nil }

// results returns the results of the plan.
func (p *plan) results() []report.ChangeResult {
	all := []report.ChangeResult{}
	for _, t := range slices.Concat(p.components, p.objects, p.crds) {
		all = append(all, t.result(report.ResultDeleted))
	}
	if p.removesNamespace() {
		all = append(all, target{installation.BuiltIn("v1", "Namespace"), p.namespaceObject}.result(report.ResultDeleted))
	}
	for i := range all {
		all[i].DryRun = true
	}
	return all
}

// allowed returns an error for a plan that would remove more than Flux.
func (p *plan) allowed() error {
	if p.removesNamespace() && protected(p.namespace) {
		return clierr.WithHint("remove only Flux with --keep-namespace", "namespace %q cannot be removed: it is a system namespace", p.namespace)
	}
	return nil
}

// permissions returns the permissions that the plan requires.
func (p *plan) permissions() []kube.Permission {
	var all []kube.Permission
	need := func(r kube.Resource, namespace string, verbs ...string) {
		for _, verb := range verbs {
			permission := kube.Permission{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: namespace}
			if !slices.Contains(all, permission) {
				all = append(all, permission)
			}
		}
	}
	for _, t := range p.components {
		need(t.resource, controllers.Namespace(t.object), "delete")
	}
	need(installation.BuiltIn("v1", "Pod"), p.namespace, "list", "watch")
	for _, t := range p.objects {
		if t.held() {
			need(t.resource, controllers.Namespace(t.object), "patch")
		}
	}
	if len(p.crds) > 0 {
		need(installation.CRDs(), "", "delete", "watch")
	}
	if p.removesNamespace() {
		need(installation.BuiltIn("v1", "Namespace"), "", "delete", "list", "watch")
	}
	return all
}
