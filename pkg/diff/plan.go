package diff

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// manager is the name under which kustomize-controller owns fields.
	manager = "kustomize-controller"
	group   = "kustomize.toolkit.fluxcd.io"
)

// Plan is what a Kustomization or a HelmRelease would apply.
type Plan struct {
	// Kustomization is the object with the spec that will hold and, where it
	// exists already, the status of the live one: its inventory tells what is pruned.
	Kustomization *unstructured.Unstructured
	// Build is what it renders to. Its objects are not changed.
	Build *build.Result
	// Revision is what it was built from, for people.
	Revision string
	// Drift reports whether the build is what the controller applied last.
	Drift bool
	// Account is the user that the controller impersonates for it, "" for none.
	Account string
	// Release says how helm-controller applies the plan, where Kustomization is
	// a HelmRelease.
	Release *Release
	// Applied returns the build of what the controller applied last, where that
	// can be had: what is encrypted and cannot be read is compared with it. It is
	// asked at most once, and may be nil.
	Applied func(context.Context) (*build.Result, error)

	// Progress is called with the number of objects that are compared, of all,
	// by several goroutines at once. It may be nil.
	Progress func(done, total int)

	// going tells that the Kustomization, or HelmRelease, itself is deleted.
	going bool
}

// item is an object of the build, completed as the controller sends it.
type item struct {
	*unstructured.Unstructured
	built build.Object
}

func (i item) ref() Ref { return RefOf(i.Unstructured) }

// encrypted tells that SOPS has encrypted the object and nobody has decrypted it.
func (i item) encrypted() bool {
	_, still := i.Object["sops"]
	return i.built.Encrypted && (still || len(i.built.Secret) == 0)
}

// plan is a Plan taken apart.
type plan struct {
	Plan
	*normalizer
	ref     Ref
	objects []item
	stale   []Ref
	rules   []rule
	force   bool
	prune   bool
	// stay is why nothing is pruned.
	stay string
	by   applier
}

func (p Plan) parsed(n *normalizer) (*plan, error) {
	if p.Release != nil {
		return p.parsedRelease(n)
	}
	k := p.Kustomization.Object
	parsed := &plan{
		Plan: p, normalizer: n, ref: RefOf(p.Kustomization), by: kustomizeController(),
		force: controllers.Path{"spec.force"}.String(k) == "true",
	}
	if p.going {
		parsed.stay = stays(p.Kustomization)
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

// complete makes of a built object what the controller sends: normal in form,
// with the labels of its owner and the common metadata.
func (p *plan) complete(o *unstructured.Unstructured) error {
	if o.GetName() == "" || o.GetKind() == "" || o.GetAPIVersion() == "" {
		return fmt.Errorf("an object of the build has no name, kind or apiVersion: %s", RefOf(o))
	}
	if err := p.normalize(o); err != nil {
		return err
	}
	labels := map[string]string{group + "/name": p.ref.Name, group + "/namespace": p.ref.Namespace}
	common := p.Kustomization.Object
	o.SetLabels(merged(o.GetLabels(), labels, textMap(common, "spec", "commonMetadata", "labels")))
	o.SetAnnotations(merged(o.GetAnnotations(), textMap(common, "spec", "commonMetadata", "annotations")))
	if isDefinition(RefOf(o)) {
		// The controller leaves the bundle to whoever injects it.
		unstructured.RemoveNestedField(o.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
	return nil
}

func textMap(o map[string]any, path ...string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(o, path...)
	return m
}

// merged is nil where there is nothing at all, so that no empty map is applied.
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

// stale are the objects of the inventory that the build no longer has.
func stale(kustomization map[string]any, objects []item) ([]Ref, error) {
	desired := map[Ref]bool{}
	for _, o := range objects {
		desired[o.ref().identity()] = true
	}
	list, _ := controllers.Path{"status.inventory.entries"}.Lookup(kustomization)
	entries, _ := list.([]any)
	var refs []Ref
	for _, entry := range entries {
		m, _ := entry.(map[string]any)
		id := controllers.Path{"id"}.String(m)
		parsed, err := controllers.ParseInventoryID(id)
		if err != nil {
			return nil, err
		}
		ref := Ref{Group: parsed.GroupKind.Group, Version: controllers.Path{"v"}.String(m), Kind: parsed.GroupKind.Kind, Namespace: parsed.Namespace, Name: parsed.Name}
		// An object of a cluster may be in the build with a namespace that means nothing.
		if !desired[ref.identity()] && (ref.Namespace != "" || !anywhere(desired, ref)) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// anywhere tells whether a build names an object of the cluster in some namespace.
func anywhere(desired map[Ref]bool, ref Ref) bool {
	for d := range desired {
		if d.Group == ref.Group && d.Kind == ref.Kind && d.Name == ref.Name {
			return true
		}
	}
	return false
}

// marked tells whether an object carries a mark that the plan's controller obeys.
func (p *plan) marked(o map[string]any, name, value string) bool {
	return p.Release == nil && marked(o, name, value)
}

// excluded tells why the plan's controller leaves an object alone.
func (p *plan) excluded(o map[string]any) string {
	switch {
	case p.Release == nil:
		return excluded(o)
	case p.Release.Step == Keep && controllers.HasSetting(o, helmGroup+"/driftDetection", "disabled"):
		return helmGroup + "/driftDetection: disabled"
	default:
		return ""
	}
}

// marked tells whether an object carries a mark of the controller, such as
// "reconcile" with "disabled".
func marked(o map[string]any, name, value string) bool {
	return controllers.HasSetting(o, group+"/"+name, value)
}

// excluded tells why the controller leaves an object alone, "" where it does not.
func excluded(o map[string]any) string {
	switch {
	case marked(o, "reconcile", "disabled"):
		return group + "/reconcile: disabled"
	case marked(o, "ssa", "Ignore"):
		return group + "/ssa: Ignore"
	default:
		return ""
	}
}

func isSecret(r Ref) bool    { return r.Group == "" && r.Kind == "Secret" }
func isNamespace(r Ref) bool { return r.Group == "" && r.Kind == "Namespace" }
func isDefinition(r Ref) bool {
	return r.Group == "apiextensions.k8s.io" && r.Kind == "CustomResourceDefinition"
}
