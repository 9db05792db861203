package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// crd holds the versions that a CRD of the plan will serve.
type crd struct {
	// shapes are the schemas of the served versions.
	shapes        map[string]shape
	clusterScoped bool
	// changed reports whether the CRD exists and differs.
	changed bool
	// served are the versions that are served now.
	served []string
}

func crdOf(o controllers.Object) crd {
	d := crd{clusterScoped: controllers.Path{"spec.scope"}.String(o) == "Cluster", shapes: map[string]shape{}}
	versions, _, _ := unstructured.NestedSlice(o, "spec", "versions")
	for _, v := range versions {
		m, ok := v.(map[string]any)
		if !ok || m["served"] != true {
			continue
		}
		open, _, _ := unstructured.NestedMap(m, "schema", "openAPIV3Schema")
		name := controllers.Path{"name"}.String(m)
		d.shapes[name] = open
		d.served = append(d.served, name)
	}
	return d
}

func crdKind(o controllers.Object) schema.GroupKind {
	return schema.GroupKind{Group: controllers.Path{"spec.group"}.String(o), Kind: controllers.Path{"spec.names.kind"}.String(o)}
}

// crdDefaults returns the fields that the server defaults in a CRD.
func crdDefaults(o controllers.Object) map[string]any {
	kind := crdKind(o).Kind
	return map[string]any{"spec": map[string]any{
		"conversion": map[string]any{"strategy": "None"},
		"names":      map[string]any{"singular": strings.ToLower(kind), "listKind": kind + "List"},
	}}
}

// recordCRDChange records a CRD whose served versions or schemas the plan changes.
func (e *Engine) recordCRDChange(before, after controllers.Object) {
	d, was := crdOf(after), crdOf(before)
	if apiequality.Semantic.DeepEqual(d.shapes, was.shapes) {
		return // dry runs of its objects are valid
	}
	d.changed, d.served = true, was.served
	e.mu.Lock()
	defer e.mu.Unlock()
	e.crds[crdKind(after)] = d
}

func (e *Engine) crd(kind schema.GroupKind) (crd, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, ok := e.crds[kind]
	return d, ok
}

// changedCRD returns the change of an object whose CRD the plan changes, validated with the new
// schema. It returns false if the result of the dry run is valid.
func (c *comparison) changedCRD(ref controllers.VersionedID, o item, s observation) (Change, bool) {
	d, ok := c.crd(ref.GroupVersionKind().GroupKind())
	if !ok || !d.changed || c.actor.denied(s.refused) {
		return Change{}, false
	}
	shape := d.shapes[ref.Version]
	if gone := shape.undeclared(o.Object); len(gone) > 0 {
		change := Change{Object: ref, Action: Failed, Reason: "its new CRD does not declare " + strings.Join(gone, ", ")}
		return c.finish(change, o, s.before, overlay(s.before, o.Object)), true
	}
	if s.refused == nil || !aboutContent(s.refused) {
		return Change{}, false
	}
	if wrong := shape.invalid(o.Object); len(wrong) > 0 {
		change := Change{Object: ref, Action: Failed, Reason: "invalid in its new CRD: " + strings.Join(wrong, "; ")}
		return c.finish(change, o, s.before, overlay(s.before, o.Object)), true
	}
	return c.unvalidated(ref, o, s.before, "the same change also changes its CRD"), true
}

// aboutContent reports whether the server refused the content of an object.
func aboutContent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), notDeclared)
}

// unvalidated returns the change of an object that the server cannot validate yet.
func (c *comparison) unvalidated(ref controllers.VersionedID, o item, before controllers.Object, why string) Change {
	change := Change{Object: ref, Action: Created, Notes: []string{"not validated: " + why}}
	after := controllers.Object(o.Object)
	if before != nil {
		change.Action, after = Changed, overlay(before, o.Object)
		c.ignore(ref, before, after)
	}
	return c.finish(change, o, before, after)
}

// unserved returns the change of an object of a kind or version that the server does not serve. It
// can be applied only if the plan also applies its CRD.
func (c *comparison) unserved(ctx context.Context, ref controllers.VersionedID, o item) (Change, error) {
	failed := func(reason string, args ...any) (Change, error) {
		c.aborted.Store(c.Release != nil)
		return c.finish(Change{Object: ref, Action: Failed, Reason: fmt.Sprintf(reason, args...)}, o, nil, o.Object), nil
	}
	d, provided := c.crd(ref.GroupVersionKind().GroupKind())
	if c.Release != nil && d.clusterScoped {
		ref.Namespace = "" // its scope was not known before
		o.SetNamespace("")
	}
	shape, serves := d.shapes[ref.Version]
	if c.templated(ref) {
		return failed("its CRD is in the chart's templates, but Helm needs it before: move it to crds/")
	}
	switch {
	case !provided:
		return failed("the cluster does not serve %s %s, and no CRD in this change defines it", ref.Kind, o.GetAPIVersion())
	case !serves:
		return failed("its CRD does not serve version %s", ref.Version)
	case !d.clusterScoped && ref.Namespace == "":
		return failed("namespace not specified")
	}
	if wrong := shape.invalid(o.Object); len(wrong) > 0 {
		return failed("invalid in its CRD: %s", strings.Join(wrong, "; "))
	}
	if !d.changed {
		return c.unvalidated(ref, o, nil, "the same change creates its CRD"), nil
	}
	before, err := c.inOtherVersion(ctx, ref, d)
	if err != nil {
		return Change{}, err
	}
	switch reason := excluded(before); {
	case reason != "":
		return Change{Object: ref, Action: Skipped, Reason: reason + " on the live object"}, nil
	case before != nil && marked(o.Object, "ssa", "IfNotPresent"):
		return Change{Object: ref, Action: Skipped, Reason: group + "/ssa: IfNotPresent, and the object exists"}, nil
	}
	return c.unvalidated(ref, o, before, "the same change adds version "+ref.Version+" to its CRD"), nil
}

// inOtherVersion returns the live object in a version that the server serves, with the apiVersion
// of the desired object. It is nil if the object does not exist.
func (c *comparison) inOtherVersion(ctx context.Context, ref controllers.VersionedID, d crd) (controllers.Object, error) {
	version := ref.Version
	for _, ref.Version = range slices.Backward(d.served) {
		live, err := c.Live(ctx, ref)
		if err != nil || live == nil {
			return nil, err
		}
		live.SetAPIVersion(ref.Group + "/" + version)
		return live.Object, nil
	}
	return nil, nil
}
