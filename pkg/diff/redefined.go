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

// definition is what a plan's CustomResourceDefinition will serve.
type definition struct {
	// shapes are those of the versions that it serves.
	shapes        map[string]shape
	clusterScoped bool
	// changed tells that there is one already, which differs.
	changed bool
	// served are the versions that are served now.
	served []string
}

func definitionOf(o controllers.Object) definition {
	d := definition{clusterScoped: controllers.Path{"spec.scope"}.String(o) == "Cluster", shapes: map[string]shape{}}
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

func definedKind(o controllers.Object) schema.GroupKind {
	return schema.GroupKind{Group: controllers.Path{"spec.group"}.String(o), Kind: controllers.Path{"spec.names.kind"}.String(o)}
}

// definitionDefaults is what the server adds to a definition.
func definitionDefaults(o controllers.Object) map[string]any {
	kind := definedKind(o).Kind
	return map[string]any{"spec": map[string]any{
		"conversion": map[string]any{"strategy": "None"},
		"names":      map[string]any{"singular": strings.ToLower(kind), "listKind": kind + "List"},
	}}
}

// redefine remembers a definition that the plan changes in what it serves.
func (e *Engine) redefine(before, after controllers.Object) {
	d, was := definitionOf(after), definitionOf(before)
	if apiequality.Semantic.DeepEqual(d.shapes, was.shapes) {
		return // what the server says of its objects holds
	}
	d.changed, d.served = true, was.served
	e.mu.Lock()
	defer e.mu.Unlock()
	e.defined[definedKind(after)] = d
}

func (e *Engine) definition(kind schema.GroupKind) (definition, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, ok := e.defined[kind]
	return d, ok
}

// redefined judges an object whose definition the plan changes, by what will
// hold then. It returns false where what the server has answered stands.
func (c *comparison) redefined(ref Ref, o item, s sight) (Change, bool) {
	d, ok := c.definition(ref.kind().GroupKind())
	if !ok || !d.changed || c.actor.denied(s.refused) {
		return Change{}, false
	}
	shape := d.shapes[ref.Version]
	if gone := shape.undeclared(o.Object); len(gone) > 0 {
		change := Change{Object: ref, Action: Failed, Reason: "its new definition does not have " + strings.Join(gone, ", ")}
		return c.finish(change, o, s.before, overlaid(s.before, o.Object)), true
	}
	if s.refused == nil || !aboutContent(s.refused) {
		return Change{}, false
	}
	if wrong := shape.invalid(o.Object); len(wrong) > 0 {
		change := Change{Object: ref, Action: Failed, Reason: "by its new definition, " + strings.Join(wrong, "; ")}
		return c.finish(change, o, s.before, overlaid(s.before, o.Object)), true
	}
	return c.unvalidated(ref, o, s.before, "its definition is changed by the same change"), true
}

// aboutContent tells whether the server refuses what an object holds.
func aboutContent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), notDeclared)
}

// unvalidated is the change of an object that no server can judge yet.
func (c *comparison) unvalidated(ref Ref, o item, before controllers.Object, why string) Change {
	change := Change{Object: ref, Action: Created, Notes: []string{"not validated: " + why}}
	after := controllers.Object(o.Object)
	if before != nil {
		change.Action, after = Changed, overlaid(before, o.Object)
		c.ignore(ref, before, after)
	}
	return c.finish(change, o, before, after)
}

// unserved judges an object of a kind or version that the server does not
// know: it is applied where the plan brings the definition, and cannot be
// otherwise.
func (c *comparison) unserved(ctx context.Context, ref Ref, o item) (Change, error) {
	failed := func(reason string, args ...any) (Change, error) {
		c.aborted.Store(c.Release != nil)
		return c.finish(Change{Object: ref, Action: Failed, Reason: fmt.Sprintf(reason, args...)}, o, nil, o.Object), nil
	}
	d, brought := c.definition(ref.kind().GroupKind())
	if c.Release != nil && d.clusterScoped {
		ref.Namespace = "" // until here, it was taken for one of the release's namespace
		o.SetNamespace("")
	}
	shape, serves := d.shapes[ref.Version]
	if c.templated(ref) {
		return failed("its definition is in the chart's templates, and Helm has to know the kind before: it belongs into the chart's folder crds")
	}
	switch {
	case !brought:
		return failed("the cluster does not serve %s %s, and nothing here defines it", ref.Kind, o.GetAPIVersion())
	case !serves:
		return failed("its definition does not serve version %s", ref.Version)
	case !d.clusterScoped && ref.Namespace == "":
		return failed("namespace not specified")
	}
	if wrong := shape.invalid(o.Object); len(wrong) > 0 {
		return failed("by its definition, %s", strings.Join(wrong, "; "))
	}
	if !d.changed {
		return c.unvalidated(ref, o, nil, "its definition is created by the same change"), nil
	}
	before, err := c.inOtherVersion(ctx, ref, d)
	if err != nil {
		return Change{}, err
	}
	switch reason := excluded(before); {
	case reason != "":
		return Change{Object: ref, Action: Skipped, Reason: reason + " on the live object"}, nil
	case before != nil && marked(o.Object, "ssa", "IfNotPresent"):
		return Change{Object: ref, Action: Skipped, Reason: group + "/ssa: IfNotPresent, and it is there"}, nil
	}
	return c.unvalidated(ref, o, before, "version "+ref.Version+" of its kind comes with the same change"), nil
}

// inOtherVersion is the live object in a version that the server has, under the
// name of the one to come; nil where there is none.
func (c *comparison) inOtherVersion(ctx context.Context, ref Ref, d definition) (controllers.Object, error) {
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
