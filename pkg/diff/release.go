package diff

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// helmManager is the name under which helm-controller owns fields.
	helmManager = "helm-controller"
	helmGroup   = "helm.toolkit.fluxcd.io"
	keepPolicy  = "helm.sh/resource-policy"
)

// Step is what helm-controller does with a release.
type Step string

// What becomes of a release. Keep is no step at all: the controller at most
// corrects what has drifted from the revision that is deployed.
const (
	Install   Step = "install"
	Upgrade   Step = "upgrade"
	Reinstall Step = "reinstall"
	Keep      Step = "keep"
)

// Release is how helm-controller applies a plan.
type Release struct {
	// Name and Namespace are those of Helm's release.
	Name, Namespace string
	Step            Step
	// Ahead is applied before the release and is no part of it: a namespace, and
	// the definitions in the chart's folder for them.
	Ahead []build.Object
	// Last are the objects of the revision that is deployed: those that the plan
	// no longer has are removed.
	Last []*unstructured.Unstructured
	// Hooks are what is run with the step.
	Hooks []Ref
	// ClientSide tells that objects are patched, as by Helm 3, and not applied.
	ClientSide bool
	// FromClientSide tells that they have been until now.
	FromClientSide bool
	// NoAdoption makes an object that exists, and is of no release, an error.
	NoAdoption bool
	// CreateOnly leaves definitions alone that exist.
	CreateOnly bool
	// Warnings are what may come otherwise than it is planned.
	Warnings []string
}

func (p Plan) parsedRelease(n *normalizer) (*plan, error) {
	parsed := &plan{Plan: p, normalizer: n, ref: RefOf(p.Kustomization), by: p.Release.applier(), prune: true}
	var err error
	if p.Release.Step == Keep {
		if parsed.rules, err = rulesOf(p.Kustomization.Object, "spec.driftDetection.ignore"); err != nil {
			return nil, fmt.Errorf("reading spec.driftDetection.ignore of %s: %w", parsed.ref, err)
		}
	}
	for _, built := range p.Release.Ahead {
		parsed.objects = append(parsed.objects, item{Unstructured: built.DeepCopy(), built: built})
	}
	desired := map[Ref]bool{}
	for _, built := range p.Build.Objects {
		o := built.DeepCopy()
		if o.GetName() == "" || o.GetKind() == "" || o.GetAPIVersion() == "" {
			return nil, fmt.Errorf("an object of the chart has no name, kind or apiVersion: %s", RefOf(o))
		}
		if p.Release.Step == Keep {
			// Helm sends what the chart says as it is; drift is looked for in normal form.
			if err := n.normalize(o); err != nil {
				return nil, fmt.Errorf("normalizing %s: %w", RefOf(o), err)
			}
		}
		p.Release.complete(o)
		parsed.objects = append(parsed.objects, item{Unstructured: o, built: built})
		desired[p.Release.identify(o)] = true
	}
	for _, o := range p.Release.Last {
		if ref := p.Release.identify(o); !desired[ref] {
			ref.Version = o.GroupVersionKind().Version
			parsed.stale = append(parsed.stale, ref)
		}
	}
	return parsed, nil
}

// applier is how the release is applied. What the controller has once patched
// it takes over when it applies, or removes by a patch: both come to the same.
func (r *Release) applier() applier {
	patched := r.ClientSide || r.FromClientSide || r.Step == Install || r.Step == Reinstall
	return applier{
		Applier: kube.Applier{Manager: helmManager, Strict: !r.ClientSide && r.Step != Keep}, group: helmGroup,
		takesOver: func(entry metav1.ManagedFieldsEntry) bool {
			return patched && r.Step != Keep && entry.Subresource == "" && entry.Manager == helmManager &&
				entry.Operation == metav1.ManagedFieldsOperationUpdate
		},
	}
}

// complete adds what Helm adds to each object of a release.
func (r *Release) complete(o *unstructured.Unstructured) {
	if o.GetNamespace() == "" {
		o.SetNamespace(r.Namespace)
	}
	o.SetLabels(merged(o.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
	o.SetAnnotations(merged(o.GetAnnotations(), r.marks()))
}

func (r *Release) marks() map[string]string {
	return map[string]string{"meta.helm.sh/release-name": r.Name, "meta.helm.sh/release-namespace": r.Namespace}
}

// identify names an object of the release whether or not it says its namespace.
func (r *Release) identify(o *unstructured.Unstructured) Ref {
	ref := RefOf(o).identity()
	if ref.Namespace == "" {
		ref.Namespace = r.Namespace
	}
	return ref
}

// last is an object as the deployed revision has it, nil where it has none.
func (r *Release) last(ref Ref) *unstructured.Unstructured {
	ref = ref.identity()
	if ref.Namespace == "" {
		ref.Namespace = r.Namespace
	}
	for _, o := range r.Last {
		if r.identify(o) == ref {
			return o
		}
	}
	return nil
}

func keeps(o map[string]any) bool {
	return textMap(o, "metadata", "annotations")[keepPolicy] == "keep"
}

// kept tells whether Helm leaves an object behind: an upgrade asks the live
// object, and an uninstallation what was applied.
func (p *plan) kept(ref Ref, live map[string]any) bool {
	if p.Release.Step == Upgrade {
		return keeps(live)
	}
	last := p.Release.last(ref)
	return last != nil && keeps(last.Object)
}

// leaves tells why an object that exists is not even looked at.
func (c *comparison) leaves(o item, live map[string]any) string {
	if o.built.Ahead && live != nil && c.Release.CreateOnly {
		return "definitions that exist are left alone"
	}
	return ""
}

// templated tells whether a release defines the kind of an object among its
// own templates.
func (c *comparison) templated(ref Ref) bool {
	return c.Release != nil && slices.ContainsFunc(c.objects, func(o item) bool {
		return isDefinition(o.ref()) && !o.built.Ahead && definedKind(o.Object) == ref.kind().GroupKind()
	})
}

// foreign tells why Helm refuses to make an object its own.
func (c *comparison) foreign(ref Ref, o item, live map[string]any) string {
	if c.Release == nil || live == nil || o.built.Ahead || !c.Release.NoAdoption || c.Release.last(ref) != nil {
		return ""
	}
	annotations := textMap(live, "metadata", "annotations")
	for key, value := range c.Release.marks() {
		if annotations[key] != value {
			return "it exists and belongs to no release, or to another, and spec has disableTakeOwnership"
		}
	}
	return ""
}

// renewed tells whether an object goes away with the old release and comes
// back with the new.
func (c *comparison) renewed(ref Ref, live map[string]any) bool {
	return c.Release != nil && c.Release.Step == Reinstall && live != nil && c.Release.last(ref) != nil && !c.kept(ref, live)
}

// anew judges an object that is deleted and created.
func (c *comparison) anew(ctx context.Context, r kube.Resource, ref Ref, o item, s sight) (Change, error) {
	change := Change{Object: ref, Action: Recreated}
	invalid, err := c.probe(ctx, r, o, ref.Namespace)
	if err != nil {
		return change, err
	}
	if invalid != nil {
		change.Action, change.Reason = Failed, "the controller will delete it and then fail to create it: "+c.said(o, invalid)
		change.Dangers = append(change.Dangers, DangerLost)
	}
	after := c.defaults(ctx, r, o)
	if len(after) == 0 {
		after = overlaid(s.before, o.Object)
	}
	_ = unstructured.SetNestedField(after, ref.Name, "metadata", "name") // it has metadata
	return c.finish(change, o, s.before, after), nil
}

// tolerate leaves alone what the controller does not take for drift: labels
// and annotations of others.
func (c *comparison) tolerate(before, after map[string]any) {
	if c.Release == nil || c.Release.Step != Keep {
		return
	}
	for _, at := range []string{"labels", "annotations"} {
		all := textMap(before, "metadata", at)
		if all == nil {
			continue
		}
		maps.Copy(all, textMap(after, "metadata", at))
		_ = unstructured.SetNestedStringMap(after, all, "metadata", at) // it has metadata
	}
}

// conclude says what the comparison of objects does not: whether drift is
// corrected, and what the step is.
func (c *comparison) conclude(result *Result) {
	result.Step, result.Hooks = c.Release.Step, c.Release.Hooks
	result.Drift = c.Release.Step == Keep
	result.Warnings = append(result.Warnings, c.Release.Warnings...)
	if c.aborted.Load() {
		c.abort(result)
	}
	if c.Release.Step == Keep {
		c.leave(result)
	}
}

// abort takes back what would be done to objects: Helm fails before, when only
// the definitions in the chart's folder for them have been applied.
func (c *comparison) abort(result *Result) {
	result.Hooks = nil
	for i, change := range result.Changes {
		ahead := i < len(c.Release.Ahead) && isDefinition(change.Object)
		if !ahead && change.Different() && change.Action != Failed {
			result.Changes[i] = Change{Object: change.Object, Action: Skipped, Reason: "Helm fails before it changes anything"}
		}
	}
}

// leave takes back the correction of drift where the controller makes none.
func (c *comparison) leave(result *Result) {
	mode := controllers.Path{"spec.driftDetection.mode"}.String(c.Kustomization.Object)
	if mode == "enabled" {
		return
	}
	reason := "it has drifted, and stays so: spec.driftDetection.mode is not enabled"
	n := 0
	for i, change := range result.Changes {
		if change.Action != Changed && change.Action != Created {
			continue
		}
		n++
		change.Action, change.Reason, change.Dangers = Skipped, reason, nil
		if change.Before == nil {
			change.Reason = "it is missing, and stays so: spec.driftDetection.mode is not enabled"
		}
		result.Changes[i] = change
	}
	if n > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %d of its objects have drifted and stay so until the next upgrade, as spec.driftDetection.mode is not enabled", c.ref, n))
	}
}
