package dryrun

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// manager is the field manager of kustomize-controller.
const manager = "kustomize-controller"

// Plan holds the objects that a Kustomization or a HelmRelease would apply, and how.
type Plan struct {
	// Owner is the Kustomization or HelmRelease with its desired spec and, if it exists, its live
	// status: the inventory determines what is pruned.
	Owner *unstructured.Unstructured
	// Build is the build of the owner. Its objects are not changed.
	Build *build.Result
	// Revision is the revision of the source, for display.
	Revision string
	// Drift reports whether the controller applied the same build last.
	Drift bool
	// Reconciled reports whether the controller has reconciled the live spec, so that Applied returns the build that it applied.
	Reconciled bool
	// Account is the user that the controller impersonates, or "" for none.
	Account string
	// Overridden lists the prefixes of further field managers whose fields kustomize-controller takes
	// over, as set by its flag --override-manager.
	Overridden []string
	// Release configures the release of a HelmRelease. It is nil for a Kustomization.
	Release *Release
	// Applied returns the build of the last applied revision. Objects that cannot be decrypted are
	// compared with it. Applied is called at most once, and may be nil.
	Applied func(context.Context) (*build.Result, error)

	// FieldOwners adds the field managers that own the changed fields.
	FieldOwners bool

	// Progress is called concurrently with the number of compared objects and the number of all objects. It may be nil.
	Progress func(done, total int)

	// ownerDeleted reports whether the owner itself is deleted.
	ownerDeleted bool
}

// item is an object of the build as the controller sends it.
type item struct {
	*unstructured.Unstructured
	built build.Object
}

func (i item) ref() controllers.VersionedID { return controllers.VersionedIDOf(i.Unstructured.Object) }

// plan is a parsed Plan.
type plan struct {
	Plan
	*normalizer
	ref     controllers.VersionedID
	objects []item
	stale   []controllers.VersionedID
	rules   []rule
	force   bool
	prune   bool
	// stay is the reason why nothing is pruned, or "" if the plan prunes.
	stay string
	by   applier
}

func (p Plan) parsed(n *normalizer) (*plan, error) {
	if p.Release != nil {
		return p.parsedRelease(n)
	}
	if kind, _ := controllers.IDOf(p.Owner.Object).Flux(); kind.Controller == controllers.OperatorName {
		return p.parsedOperated(n, kind)
	}
	k := p.Owner.Object
	parsed := &plan{
		Plan: p, normalizer: n, ref: controllers.VersionedIDOf(p.Owner.Object), by: kustomizeController(p.Overridden),
		force: controllers.Path{"spec.force"}.String(k) == "true",
	}
	if p.ownerDeleted {
		parsed.stay = keptReason(p.Owner)
	} else if prune := (controllers.Path{"spec.prune"}).String(k); prune != "true" {
		parsed.stay = "the Kustomization does not prune"
	}
	parsed.prune = parsed.stay == ""
	var err error
	if parsed.rules, err = rulesOf(k, "spec.ignore"); err != nil {
		return nil, fmt.Errorf("reading spec.ignore of %s: %w", parsed.ref, err)
	}
	for _, built := range p.Build.Objects {
		o := built.DeepCopy()
		if err := parsed.complete(o); err != nil {
			return nil, err
		}
		parsed.objects = append(parsed.objects, item{Unstructured: o, built: built})
	}
	if parsed.stale, err = stale(k, parsed.objects); err != nil {
		return nil, fmt.Errorf("reading the inventory of %s: %w", parsed.ref, err)
	}
	return parsed, nil
}

// parsedOperated returns the plan of a ResourceSet or FluxInstance: flux-operator applies the rendered objects, which have the
// labels of the owner and the common metadata, and prunes its inventory.
func (p Plan) parsedOperated(n *normalizer, kind controllers.Kind) (*plan, error) {
	force := controllers.OperatorGroup + "/force"
	parsed := &plan{Plan: p, normalizer: n, ref: controllers.VersionedIDOf(p.Owner.Object), by: operatorApplier(kind), force: controllers.HasSetting(p.Owner.Object, force, "enabled")}
	for _, built := range p.Build.Objects {
		o := built.DeepCopy()
		if err := n.normalize(o); err != nil {
			return nil, err
		}
		parsed.objects = append(parsed.objects, item{Unstructured: o, built: built})
	}
	if parsed.ref.IsFluxInstance() && !p.ownerDeleted {
		return parsed, nil // its inventory contains the objects of the controllers, which are not rendered
	}
	if p.ownerDeleted && kind.Suspension.Is(p.Owner.Object) {
		parsed.stay = "suspended"
	}
	parsed.prune = parsed.stay == ""
	var err error
	if parsed.stale, err = stale(p.Owner.Object, parsed.objects); err != nil {
		return nil, fmt.Errorf("reading the inventory of %s: %w", parsed.ref, err)
	}
	return parsed, nil
}

// complete turns a built object into the one that the controller sends: normalized, with the
// labels of its owner and the common metadata.
func (p *plan) complete(o *unstructured.Unstructured) error {
	if o.GetName() == "" || o.GetKind() == "" || o.GetAPIVersion() == "" {
		return fmt.Errorf("the build contains an object without name, kind or apiVersion: %s", controllers.VersionedIDOf(o.Object))
	}
	if err := p.normalize(o); err != nil {
		return err
	}
	labels := map[string]string{policy.Group + "/name": p.ref.Name, policy.Group + "/namespace": p.ref.Namespace}
	common := p.Owner.Object
	o.SetLabels(merged(o.GetLabels(), labels, policy.TextMap(common, "spec", "commonMetadata", "labels")))
	o.SetAnnotations(merged(o.GetAnnotations(), policy.TextMap(common, "spec", "commonMetadata", "annotations")))
	if controllers.VersionedIDOf(o.Object).IsCRD() {
		// The controller leaves the CA bundle to the program that injects it.
		unstructured.RemoveNestedField(o.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	return nil
}

// merged returns the union of maps, or nil if all are empty, so that no empty map is applied.
func merged(parts ...map[string]string) map[string]string {
	var all map[string]string
	for _, part := range parts {
		for key, value := range part {
			if all == nil {
				all = map[string]string{}
			}
			all[key] = value
		}
	}
	return all
}

// stale returns the objects of the inventory that are no longer in the build.
func stale(kustomization map[string]any, objects []item) ([]controllers.VersionedID, error) {
	desired := map[controllers.ID]bool{}
	for _, o := range objects {
		desired[o.ref().ID] = true
	}
	entries, err := controllers.ParseInventory(kustomization)
	if err != nil {
		return nil, err
	}
	var refs []controllers.VersionedID
	for _, ref := range entries {
		// The build may give a cluster-scoped object a namespace, which has no effect.
		if !desired[ref.ID] && (ref.Namespace != "" || !anywhere(desired, ref.ID)) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// anywhere reports whether a build contains a cluster-scoped object, regardless of the namespace in its manifest.
func anywhere(desired map[controllers.ID]bool, ref controllers.ID) bool {
	for d := range desired {
		if d.Group == ref.Group && d.Kind == ref.Kind && d.Name == ref.Name {
			return true
		}
	}
	return false
}

// marked reports whether an object has an annotation or label of kustomize-controller with the given value.
func (p *plan) marked(o map[string]any, name, value string) bool {
	return p.Release == nil && p.by.group == policy.Group && policy.Marked(o, name, value)
}

// excluded returns why the controller of the plan does not manage an object, or "" if it does.
func (p *plan) excluded(o map[string]any) string {
	switch {
	case p.Release == nil && p.by.group == policy.Group:
		return policy.Excluded(o)
	case p.Release != nil && p.Release.Step == diff.Keep && controllers.HasSetting(o, policy.HelmGroup+"/driftDetection", "disabled"):
		return policy.HelmGroup + "/driftDetection: disabled"
	default:
		return ""
	}
}
