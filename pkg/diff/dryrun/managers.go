package dryrun

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/crd"
	"github.com/fluxkit/flux/pkg/diff/managedfields"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// leftovers is the metadata that the controller removes from live objects.
var leftovers = map[string][]string{
	"annotations": {corev1.LastAppliedConfigAnnotation, "kustomize.toolkit.fluxcd.io/checksum", "fluxcd.io/sync-checksum"},
	"labels":      {"fluxcd.io/sync-gc-mark"},
}

// takeOver removes from the result of a dry run the fields that the controller removes before it applies: it takes over the
// fields of kubectl, so that fields that are not in the build are removed. A dry run does not include this step.
func (c *comparison) takeOver(ctx context.Context, r kube.Resource, o item, before, after map[string]any) {
	if c.marked(o.Object, "ssa", "Merge") || c.marked(before, "ssa", "Merge") {
		return
	}
	for at, keys := range c.by.leftovers {
		metadata, _ := after["metadata"].(map[string]any)
		m, _ := metadata[at].(map[string]any)
		for _, key := range keys {
			if m[key] != policy.TextMap(o.Object, "metadata", at)[key] {
				delete(m, key)
			}
		}
	}
	gone := c.by.takenOver(&unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after})
	if gone == nil || gone.Empty() {
		return
	}
	var defaults map[string]any
	gone.Leaves().Iterate(func(p fieldpath.Path) {
		if len(p) == 0 || *orEmpty(p[0].FieldName) == "status" {
			return
		}
		if spec := *orEmpty(p[0].FieldName); defaults == nil && spec != "metadata" && spec != "data" {
			defaults = c.defaults(ctx, r, o)
		}
		managedfields.Replace(after, defaults, slices.Clone(p))
	})
}

// setOwners sets the owners of fields from the managed fields of the live object.
func setOwners(fields []diff.Field, before, after controllers.Object) {
	managers := managedfields.Of(before)
	for i, f := range fields {
		content := after
		if f.Op == diff.Removed {
			content = before
		}
		for _, m := range managedfields.OwnersOf(managers, content, f.Pointer) {
			owner := diff.FieldOwner{Manager: m.Name, Subresource: m.Subresource}
			if !m.At.IsZero() {
				owner.At = &m.At
			}
			fields[i].Owners = append(fields[i].Owners, owner)
		}
	}
}

func orEmpty(s *string) *string {
	if s == nil {
		return new(string)
	}
	return s
}

// cleansUp reports whether the controller patches the live object before it applies the desired one.
func cleansUp(desired, live map[string]any) bool {
	if policy.Marked(desired, "ssa", "Merge") || policy.Marked(live, "ssa", "Merge") {
		return false
	}
	for at, keys := range leftovers {
		for _, key := range keys {
			if _, there := policy.TextMap(live, "metadata", at)[key]; there {
				return true
			}
		}
	}
	return slices.ContainsFunc((&unstructured.Unstructured{Object: live}).GetManagedFields(), takesOverFields)
}

// takenOver returns the fields that are owned only by managers whose fields the controller takes over,
// such as kubectl, and that are not in the build.
func (a applier) takenOver(before, after *unstructured.Unstructured) *fieldpath.Set {
	theirs, others := fieldpath.NewSet(), fieldpath.NewSet()
	found := false
	for _, entry := range before.GetManagedFields() {
		if a.takesOver(entry) {
			found = true
			theirs = theirs.Union(fieldsOf(entry))
		} else if entry.Manager != a.Manager || entry.Operation != metav1.ManagedFieldsOperationApply {
			others = others.Union(fieldsOf(entry))
		}
	}
	if !found {
		return nil
	}
	for _, entry := range after.GetManagedFields() {
		if entry.Manager == a.Manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			others = others.Union(fieldsOf(entry))
		}
	}
	return theirs.Leaves().Difference(others)
}

// The prefixes of the field managers of kubectl, and of the API server for fields that were set before managers were recorded.
const (
	kubectl     = "kubectl"
	beforeApply = "before-first-apply"
)

// takesOverFields reports whether kustomize-controller takes over the fields of an entry with any of its flags.
func takesOverFields(entry metav1.ManagedFieldsEntry) bool {
	if entry.Subresource != "" {
		return false
	}
	switch entry.Operation {
	case metav1.ManagedFieldsOperationApply:
		return strings.HasPrefix(entry.Manager, kubectl)
	case metav1.ManagedFieldsOperationUpdate:
		return strings.HasPrefix(entry.Manager, kubectl) || strings.HasPrefix(entry.Manager, beforeApply) || strings.HasPrefix(entry.Manager, manager)
	}
	return false
}

func fieldsOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return set
	}
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return fieldpath.NewSet() // written by the server, so not expected
	}
	return set
}

// defaults returns the object with the defaults of the server, as for a new object.
func (c *comparison) defaults(ctx context.Context, r kube.Resource, o item) map[string]any {
	if o.ref().IsCRD() {
		return crd.Defaults(o.Object) // the name of a CRD follows from its spec, so it cannot be created under another name
	}
	fresh := o.DeepCopy()
	fresh.SetName(probeName)
	made, err := kube.DryRun(ctx, c.Client, r, fresh.Object, c.by.Applier)
	if err != nil {
		return map[string]any{}
	}
	return made
}
