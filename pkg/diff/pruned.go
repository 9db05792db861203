package diff

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// pruned tells what becomes of an object of the inventory that is no longer
// in the build.
func (c *comparison) pruned(ctx context.Context, ref Ref) (Change, error) {
	change := Change{Object: ref, Action: Skipped}
	if !c.prune {
		change.Reason = c.stay
		return change, nil
	}
	r, served := c.kinds.of(ref.kind())
	if !served && c.Release != nil && c.Release.Step == Upgrade {
		c.aborted.Store(true)
		change.Action, change.Reason = Failed, "the cluster no longer serves its kind, and Helm cannot upgrade a release that has an object of it"
		return change, nil
	}
	if !served {
		change.Reason = "the cluster no longer serves its kind"
		return change, nil
	}
	if r.ClusterScoped {
		ref.Namespace, change.Object.Namespace = "", ""
	}
	at := scopeOf(r, ref)
	o, err := c.live.listed(at, ref.Name)
	if err == nil && o == nil {
		o, err = c.live.get(ctx, at, ref.Name)
	}
	if err != nil {
		return change, fmt.Errorf("looking for %s: %w", ref, err)
	}
	labels := textMap(o, "metadata", "labels")
	switch reason := excluded(o); {
	case o == nil:
		change.Reason = "it is gone already"
	case c.Release != nil && c.kept(ref, o):
		change.Reason = keepPolicy + ": keep"
	case c.Release != nil:
		return c.deleted(ctx, r, change, o)
	case c.ref.IsHelmRelease():
		if change.Reason = uninstalled(ref, o); change.Reason == "" {
			return c.deleted(ctx, r, change, o)
		}
	case labels[group+"/name"] != c.ref.Name || labels[group+"/namespace"] != c.ref.Namespace:
		change.Reason = "it is not owned by this Kustomization"
	case marked(o, "prune", "disabled"):
		change.Reason = group + "/prune: disabled"
	case reason != "":
		change.Reason = reason
	default:
		return c.deleted(ctx, r, change, o)
	}
	return change, nil
}

// deleted is the change of an object that the controller deletes, if it may.
func (c *comparison) deleted(ctx context.Context, r kube.Resource, change Change, o controllers.Object) (Change, error) {
	may, err := c.actor.allowed(ctx, "delete", r, change.Object)
	if err != nil {
		return change, fmt.Errorf("looking for %s: %w", change.Object, err)
	}
	if !may {
		change.Action, change.Reason = Failed, "pruning it is forbidden: "+c.actor.mayNot("delete", r, change.Object)
		return change, nil
	}
	change.Action = Pruned
	return c.finish(change, item{}, o, nil), nil
}

// finish fills in what differs, in what may be shown, and what is dangerous
// about it. A change that makes no difference is none.
func (c *comparison) finish(change Change, o item, before, after controllers.Object) Change {
	b, a := tidy(before), tidy(after)
	if change.Action == Changed && len(Fields(content(b), content(a))) == 0 {
		return Change{Object: change.Object, Action: Unchanged}
	}
	if change.Action == Pruned && c.hasSecrets() {
		// Nothing tells any more which of its values were secret.
		b = bare(b)
	}
	mask(change.Object, built(o), content(b), content(a), o.built.Secret)
	veilObjects(b, a, c.Build.SecretValues, o.built.Encrypted)
	change.Before, change.After = b, a
	if before != nil && after != nil {
		change.Fields = Fields(content(b), content(a))
	}
	change.Images = images(content(b), content(a))
	change.Dangers = append(change.Dangers, dangers(change)...)
	return change
}

func built(o item) map[string]any { return content(o.built.Unstructured) }

func content(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// kept is the metadata that a build can set and the controller compares.
var kept = []string{"name", "namespace", "labels", "annotations"}

// tidy returns a copy of an object without what the server keeps about it.
func tidy(o map[string]any) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	clean := (&unstructured.Unstructured{Object: o}).DeepCopy()
	delete(clean.Object, "status")
	metadata, _ := clean.Object["metadata"].(map[string]any)
	short := map[string]any{}
	for _, field := range kept {
		if v, ok := metadata[field]; ok && !empty(v) {
			short[field] = v
		}
	}
	clean.Object["metadata"] = short
	return clean
}

// hasSecrets tells whether objects may hold values that came out of Secrets or
// encrypted files without being Secrets.
func (p *plan) hasSecrets() bool {
	secrets := p.decrypts()
	from, _, _ := unstructured.NestedSlice(p.Kustomization.Object, "spec", "postBuild", "substituteFrom")
	values, _, _ := unstructured.NestedSlice(p.Kustomization.Object, "spec", "valuesFrom")
	from = append(from, values...)
	for _, item := range from {
		m, _ := item.(map[string]any)
		secrets = secrets || m["kind"] == "Secret"
	}
	return secrets
}

// bare is no more than which object it is.
func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	only := &unstructured.Unstructured{Object: map[string]any{}}
	only.SetGroupVersionKind(o.GroupVersionKind())
	only.SetNamespace(o.GetNamespace())
	only.SetName(o.GetName())
	return only
}

// veilObjects masks texts in all of both versions but what names the object.
func veilObjects(before, after *unstructured.Unstructured, secrets []string, encrypted bool) {
	b, a := settable(before), settable(after)
	veilTexts(b, a, secrets, encrypted)
	for o, fields := range map[*unstructured.Unstructured]map[string]any{before: b, after: a} {
		for key := range fields {
			if key != "metadata" && o != nil {
				o.Object[key] = fields[key]
			}
		}
	}
}

// settable is what of an object may hold any text. It shares maps and lists
// with the object.
func settable(o *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	if o == nil {
		return fields
	}
	for key, value := range o.Object {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			metadata, _ := value.(map[string]any)
			fields[key] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
		default:
			fields[key] = value
		}
	}
	return fields
}
