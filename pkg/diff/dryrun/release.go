package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/crd"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// helmManager is the field manager of helm-controller.
const helmManager = "helm-controller"

// Release configures how helm-controller applies a plan.
type Release struct {
	// Name and Namespace identify the Helm release.
	Name, Namespace string
	Step            diff.Step
	// Ahead holds the objects that are applied before the release and are not part of it: a
	// namespace, and the CRDs from crds/.
	Ahead []build.Object
	// Last holds the objects of the deployed revision. Those that are no longer in the plan are
	// removed.
	Last []*unstructured.Unstructured
	// Hooks holds the Helm hooks of the step.
	Hooks []controllers.VersionedID
	// ClientSide reports whether objects are patched, as in Helm 3, instead of applied.
	ClientSide bool
	// FromClientSide reports whether objects were patched until now.
	FromClientSide bool
	// NoAdoption makes it an error if an object exists and is not part of the release.
	NoAdoption bool
	// CreateOnly keeps existing CRDs as they are.
	CreateOnly bool
	// Warnings holds the differences that the plan cannot show.
	Warnings []string
}

func (p Plan) parsedRelease(n *normalizer) (*plan, error) {
	parsed := &plan{Plan: p, normalizer: n, ref: controllers.VersionedIDOf(p.Owner.Object), by: p.Release.applier(), prune: true}
	var err error
	if p.Release.Step == diff.Keep {
		if parsed.rules, err = rulesOf(p.Owner.Object, "spec.driftDetection.ignore"); err != nil {
			return nil, fmt.Errorf("reading spec.driftDetection.ignore of %s: %w", parsed.ref, err)
		}
	}
	for _, built := range p.Release.Ahead {
		parsed.objects = append(parsed.objects, item{Unstructured: built.DeepCopy(), built: built})
	}
	desired := map[controllers.ID]bool{}
	for _, built := range p.Build.Objects {
		o := built.DeepCopy()
		if o.GetName() == "" || o.GetKind() == "" || o.GetAPIVersion() == "" {
			return nil, fmt.Errorf("the chart contains an object without name, kind or apiVersion: %s", controllers.VersionedIDOf(o.Object))
		}
		if p.Release.Step == diff.Keep {
			// Helm applies the manifests of the chart unchanged; drift detection normalizes them.
			if err := n.normalize(o); err != nil {
				return nil, fmt.Errorf("normalizing %s: %w", controllers.VersionedIDOf(o.Object), err)
			}
		}
		p.Release.complete(o)
		parsed.objects = append(parsed.objects, item{Unstructured: o, built: built})
		desired[p.Release.Identify(o)] = true
	}
	for _, o := range p.Release.Last {
		if ref := p.Release.Identify(o); !desired[ref] {
			parsed.stale = append(parsed.stale, controllers.VersionedID{ID: ref, Version: o.GroupVersionKind().Version})
		}
	}
	return parsed, nil
}

// applier returns how the release is applied. When the controller applies an object that it
// patched before, it takes over its own fields or removes them by a patch, with the same result.
func (r *Release) applier() applier {
	patched := r.ClientSide || r.FromClientSide || r.Step == diff.Install || r.Step == diff.Reinstall
	return applier{
		Applier: kube.Applier{Manager: helmManager, Strict: !r.ClientSide && r.Step != diff.Keep}, group: policy.HelmGroup,
		takesOver: func(entry metav1.ManagedFieldsEntry) bool {
			return patched && r.Step != diff.Keep && entry.Subresource == "" && entry.Manager == helmManager &&
				entry.Operation == metav1.ManagedFieldsOperationUpdate
		},
	}
}

// complete adds the namespace, labels and annotations that Helm adds to each object of a release.
func (r *Release) complete(o *unstructured.Unstructured) {
	if o.GetNamespace() == "" {
		o.SetNamespace(r.Namespace)
	}
	o.SetLabels(merged(o.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
	o.SetAnnotations(merged(o.GetAnnotations(), r.ownerAnnotations()))
}

func (r *Release) ownerAnnotations() map[string]string {
	return map[string]string{"meta.helm.sh/release-name": r.Name, "meta.helm.sh/release-namespace": r.Namespace}
}

// Identify returns the identity of an object of the release, with the namespace of the release if
// it has none.
func (r *Release) Identify(o *unstructured.Unstructured) controllers.ID {
	ref := controllers.IDOf(o.Object)
	if ref.Namespace == "" {
		ref.Namespace = r.Namespace
	}
	return ref
}

// last returns an object of the deployed revision, or nil if the revision does not contain it.
func (r *Release) last(ref controllers.ID) *unstructured.Unstructured {
	if ref.Namespace == "" {
		ref.Namespace = r.Namespace
	}
	for _, o := range r.Last {
		if r.Identify(o) == ref {
			return o
		}
	}
	return nil
}

// templated reports whether the templates of the release contain the CRD of an object.
func (p *plan) templated(ref controllers.VersionedID) bool {
	return p.Release != nil && slices.ContainsFunc(p.objects, func(o item) bool {
		return o.ref().IsCRD() && !o.built.Ahead && crd.Kind(o.Object) == ref.GroupVersionKind().GroupKind()
	})
}

// recreate returns the change of an object that is deleted and created.
func (c *comparison) recreate(ctx context.Context, r kube.Resource, ref controllers.VersionedID, o item, s observation) (diff.Change, error) {
	change := diff.Change{Object: ref, Action: diff.Recreated}
	invalid, err := c.probe(ctx, r, o, ref.Namespace)
	if err != nil {
		return change, err
	}
	if invalid != nil {
		change.Action, change.Reason = diff.Failed, "the controller will delete the object and then fail to create it: "+c.dryRunError(o, invalid)
		change.Dangers = append(change.Dangers, diff.Danger{Rule: diff.DangerLost})
	}
	after := c.defaults(ctx, r, o)
	if len(after) == 0 {
		after = overlay(s.before, o.Object)
	}
	_ = unstructured.SetNestedField(after, ref.Name, "metadata", "name") // every object has metadata
	return c.finish(change, o, s.before, after), nil
}

// addRelease adds the step, the hooks and the warnings of the release to the result.
func (c *comparison) addRelease(result *diff.Result) {
	result.Step, result.Hooks = c.Release.Step, c.Release.Hooks
	result.Drift = c.Release.Step == diff.Keep
	result.Warnings = append(result.Warnings, c.Release.Warnings...)
	if c.aborted.Load() {
		c.Release.skipChanges(result)
	}
	if c.Release.Step == diff.Keep {
		c.skipDriftCorrection(result)
	}
}

// skipDriftCorrection replaces the correction of drift unless the controller corrects it.
func (p *plan) skipDriftCorrection(result *diff.Result) {
	mode := cmp.Or(controllers.Path{"spec.driftDetection.mode"}.String(p.Owner.Object), "disabled")
	if mode == "enabled" {
		return
	}
	n := 0
	for i, change := range result.Changes {
		if change.Action != diff.Changed && change.Action != diff.Created {
			continue
		}
		n++
		state := "drifted"
		if change.Before == nil {
			state = "missing"
		}
		change.Action, change.Dangers = diff.Skipped, nil
		change.Reason = state + ", not corrected: spec.driftDetection.mode is " + mode
		result.Changes[i] = change
	}
	switch n {
	case 0:
	case 1:
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: 1 object differs from the release and is not corrected until the next upgrade: spec.driftDetection.mode is %s", p.ref, mode))
	default:
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %d objects differ from the release and are not corrected until the next upgrade: spec.driftDetection.mode is %s", p.ref, n, mode))
	}
}
