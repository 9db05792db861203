package diff

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// compareStale returns the change of an object of the inventory that is no longer in the build.
func (c *comparison) compareStale(ctx context.Context, ref controllers.VersionedID) (Change, error) {
	change := Change{Object: ref, Action: Skipped}
	if !c.prune {
		change.Reason, change.Orphaned = c.stay, true
		return change, nil
	}
	r, served := c.kinds.of(ref.GroupVersionKind())
	if !served && c.Release != nil && c.Release.Step == Upgrade {
		c.aborted.Store(true)
		change.Action, change.Reason = Failed, "the cluster no longer serves its kind: Helm cannot upgrade a release with such an object"
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
		return change, fmt.Errorf("reading %s: %w", ref, err)
	}
	labels := textMap(o, "metadata", "labels")
	switch reason := excluded(o); {
	case o == nil:
		change.Reason = "already deleted"
	case c.Release != nil && c.Release.isKept(ref, o):
		change.Reason = keepPolicy + ": keep"
	case c.Release != nil:
		return c.deleted(ctx, r, change, o)
	case isRelease(c.ref.ID):
		if change.Reason = uninstallSkipReason(ref, o); change.Reason == "" {
			return c.deleted(ctx, r, change, o)
		}
	case labels[group+"/name"] != c.ref.Name || labels[group+"/namespace"] != c.ref.Namespace:
		change.Reason = "not owned by this Kustomization"
	case marked(o, "prune", "disabled"):
		change.Reason = group + "/prune: disabled"
	case reason != "":
		change.Reason = reason
	default:
		return c.deleted(ctx, r, change, o)
	}
	return change, nil
}

// deleted returns the change of an object that the controller deletes, if it has the permission.
func (c *comparison) deleted(ctx context.Context, r kube.Resource, change Change, o controllers.Object) (Change, error) {
	may, err := c.actor.allowed(ctx, "delete", r, change.Object)
	if err != nil {
		return change, fmt.Errorf("checking the permission to delete %s: %w", change.Object, err)
	}
	if !may {
		change.Action, change.Reason = Failed, "pruning is forbidden: "+c.actor.forbidden("delete", r, change.Object)
		return change, nil
	}
	change.Action = Pruned
	return c.finish(change, item{}, o, nil), nil
}

// finish adds the fields that differ, with secret values masked. A change without a difference
// becomes Unchanged.
func (p *plan) finish(change Change, o item, before, after controllers.Object) Change {
	b, a := tidy(before), tidy(after)
	if change.Action == Changed && len(Fields(content(b), content(a))) == 0 {
		return Change{Object: change.Object, Action: Unchanged}
	}
	if change.Action == Pruned && p.hasSecrets() {
		// Without a build it is unknown which of its values are secret.
		b = bare(b)
	}
	mask(change.Object, built(o), content(b), content(a), o.built.Secret)
	maskObjects(b, a, p.Build.SecretValues, o.built.Encrypted)
	change.Notes = append(change.Notes, hideUnstable(a, o.built)...)
	change.Before, change.After = b, a
	if before != nil && after != nil {
		change.Fields = Fields(content(b), content(a))
	}
	change.Images = images(content(b), content(a))
	change.explainMasks()
	return change
}

func built(o item) map[string]any { return content(o.built.Unstructured) }

func content(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// keptMetadata lists the fields of metadata that a build can set and the controller compares.
var keptMetadata = []string{"name", "namespace", "labels", "annotations"}

// tidy returns a copy of an object without status and the metadata that the server maintains.
func tidy(o map[string]any) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	clean := (&unstructured.Unstructured{Object: o}).DeepCopy()
	delete(clean.Object, "status")
	metadata, _ := clean.Object["metadata"].(map[string]any)
	short := map[string]any{}
	for _, field := range keptMetadata {
		if v, ok := metadata[field]; ok && !empty(v) {
			short[field] = v
		}
	}
	clean.Object["metadata"] = short
	return clean
}

// hasSecrets reports whether objects other than Secrets may contain values from Secrets or
// encrypted files.
func (p *plan) hasSecrets() bool {
	return p.decrypts() || refersToSecrets(p.Owner)
}

// refersToSecrets reports whether an object takes variables or values from Secrets.
func refersToSecrets(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(build.DataReferences(o), func(ref controllers.ID) bool { return ref.Kind == "Secret" })
}

// bare returns an object with only its kind, namespace and name.
func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	only := &unstructured.Unstructured{Object: map[string]any{}}
	only.SetGroupVersionKind(o.GroupVersionKind())
	only.SetNamespace(o.GetNamespace())
	only.SetName(o.GetName())
	return only
}

// maskObjects masks texts in both versions, except those that identify the object.
func maskObjects(before, after *unstructured.Unstructured, secrets []string, encrypted bool) {
	b, a := settable(before), settable(after)
	maskTexts(b, a, secrets, encrypted)
	for o, fields := range map[*unstructured.Unstructured]map[string]any{before: b, after: a} {
		for key := range fields {
			if key != "metadata" && o != nil {
				o.Object[key] = fields[key]
			}
		}
	}
}

// settable returns the fields of an object that may hold any text. It shares maps and lists with
// the object.
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
