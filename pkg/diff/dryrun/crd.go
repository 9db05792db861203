package dryrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/crd"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// recordCRDChange records a CRD whose served versions or schemas the plan changes.
func (e *Engine) recordCRDChange(before, after controllers.Object) {
	d, was := crd.Of(after), crd.Of(before)
	if apiequality.Semantic.DeepEqual(d.Shapes, was.Shapes) {
		return // dry runs of its objects are valid
	}
	d.Changed, d.Served = true, was.Served
	e.mu.Lock()
	defer e.mu.Unlock()
	e.crds[crd.Kind(after)] = d
}

func (e *Engine) crd(kind schema.GroupKind) (crd.Definition, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, ok := e.crds[kind]
	return d, ok
}

// changedCRD returns the change of an object whose CRD the plan changes, validated with the new
// schema. It returns false if the result of the dry run is valid.
func (c *comparison) changedCRD(ref controllers.VersionedID, o item, s observation) (diff.Change, bool) {
	d, ok := c.crd(ref.GroupVersionKind().GroupKind())
	if !ok || !d.Changed || c.actor.denied(s.refused) {
		return diff.Change{}, false
	}
	shape := d.Shapes[ref.Version]
	if gone := shape.Undeclared(o.Object); len(gone) > 0 {
		change := diff.Change{Object: ref, Action: diff.Failed, Reason: "its new CRD does not declare " + strings.Join(gone, ", ")}
		return c.finish(change, o, s.before, overlay(s.before, o.Object)), true
	}
	if s.refused == nil || !aboutContent(s.refused) {
		return diff.Change{}, false
	}
	if wrong := shape.Invalid(o.Object); len(wrong) > 0 {
		change := diff.Change{Object: ref, Action: diff.Failed, Reason: "invalid in its new CRD: " + strings.Join(wrong, "; ")}
		return c.finish(change, o, s.before, overlay(s.before, o.Object)), true
	}
	return c.unvalidated(ref, o, s.before, "the same change also changes its CRD"), true
}

// aboutContent reports whether the server rejected the content of an object.
func aboutContent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), crd.NotDeclared)
}

// unvalidated returns the change of an object that the server cannot validate yet.
func (c *comparison) unvalidated(ref controllers.VersionedID, o item, before controllers.Object, why string) diff.Change {
	change := diff.Change{Object: ref, Action: diff.Created, Notes: []string{"not validated: " + why}}
	after := controllers.Object(o.Object)
	if before != nil {
		change.Action, after = diff.Changed, overlay(before, o.Object)
		c.ignore(ref, before, after)
	}
	return c.finish(change, o, before, after)
}

// unserved returns the change of an object of a kind or version that the server does not serve. It
// can be applied only if the plan also applies its CRD.
func (c *comparison) unserved(ctx context.Context, ref controllers.VersionedID, o item) (diff.Change, error) {
	failed := func(reason string, args ...any) (diff.Change, error) {
		c.aborted.Store(c.Release != nil)
		return c.finish(diff.Change{Object: ref, Action: diff.Failed, Reason: fmt.Sprintf(reason, args...)}, o, nil, o.Object), nil
	}
	d, provided := c.crd(ref.GroupVersionKind().GroupKind())
	if c.Release != nil && d.ClusterScoped {
		ref.Namespace = "" // its scope was not known before
		o.SetNamespace("")
	}
	shape, serves := d.Shapes[ref.Version]
	if c.templated(ref) {
		return failed("its CRD is in the chart's templates, but Helm requires the CRD before it applies the templates: move it to crds/")
	}
	switch {
	case !provided:
		return failed("the cluster does not serve %s %s, and no CRD in this change defines it", ref.Kind, o.GetAPIVersion())
	case !serves:
		return failed("its CRD does not serve version %s", ref.Version)
	case !d.ClusterScoped && ref.Namespace == "":
		return failed("namespace not specified")
	}
	if wrong := shape.Invalid(o.Object); len(wrong) > 0 {
		return failed("invalid in its CRD: %s", strings.Join(wrong, "; "))
	}
	if !d.Changed {
		return c.unvalidated(ref, o, nil, "the same change creates its CRD"), nil
	}
	before, err := c.inOtherVersion(ctx, ref, d)
	if err != nil {
		return diff.Change{}, err
	}
	switch reason := policy.Excluded(before); {
	case reason != "":
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: reason + " on the live object"}, nil
	case before != nil && policy.Marked(o.Object, "ssa", "IfNotPresent"):
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: policy.IfNotPresent}, nil
	}
	return c.unvalidated(ref, o, before, "the same change adds version "+ref.Version+" to its CRD"), nil
}

// inOtherVersion returns the live object in a version that the server serves, with the apiVersion
// of the desired object. It is nil if the object does not exist.
func (c *comparison) inOtherVersion(ctx context.Context, ref controllers.VersionedID, d crd.Definition) (controllers.Object, error) {
	version := ref.Version
	for _, ref.Version = range slices.Backward(d.Served) {
		live, err := c.Live(ctx, ref)
		if err != nil || live == nil {
			return nil, err
		}
		live.SetAPIVersion(ref.Group + "/" + version)
		return live.Object, nil
	}
	return nil, nil
}
