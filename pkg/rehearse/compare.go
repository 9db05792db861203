package rehearse

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// comparison compares the results of both versions for the same input.
type comparison struct {
	from, to *testrun.Run
	report   *Report
	// manifests holds the manifests of the Flux objects on both sides.
	manifests map[controllers.ID]*unstructured.Unstructured
}

func compare(ctx context.Context, from, to *testrun.Run) (*Report, error) {
	c := &comparison{from: from, to: to, manifests: map[controllers.ID]*unstructured.Unstructured{}, report: &Report{
		From: from.Distribution.Version, To: to.Distribution.Version, Path: from.Repository.Path,
		Findings: []Finding{}, NotRehearsed: []settle.Omission{}, Changes: []*diff.Result{},
	}}
	for _, step := range []func(context.Context) error{c.compareManifests, c.compareStates, c.compareEvents} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	c.compareObjects()
	c.listControllers()
	c.listUnsettled()
	c.locate(ctx)
	levels := []Level{Breaks, Migrate, Changes, Notice}
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level)), strings.Compare(a.Object.String(), b.Object.String()))
	})
	slices.SortFunc(c.report.NotRehearsed, func(a, b settle.Omission) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	c.report.conclude()
	return c.report, nil
}

func (c *comparison) find(f Finding) {
	f.Message = redact.Text(f.Message)
	c.report.Findings = append(c.report.Findings, f)
}

// locate adds the files of the objects.
func (c *comparison) locate(ctx context.Context) {
	if c.from.Exported != nil {
		return
	}
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		f.File = c.from.Repository.FileOf(ctx, f.Object.Kind, f.Object.Name)
	}
}

func (c *comparison) listUnsettled() {
	for _, s := range []*testrun.Run{c.from, c.to} {
		if s.Unsettled == nil {
			continue
		}
		for t, f := range s.Flux {
			if f.Kind.HasConditions() && !f.Kind.Finished(f.Object) && !f.Kind.Suspension.Is(f.Object) {
				c.report.Unsettled = append(c.report.Unsettled, t.String()+" with Flux "+s.Distribution.Version+": "+f.Kind.Ready(f.Object).Message)
			}
		}
		if len(c.report.Unsettled) == 0 {
			c.report.Unsettled = []string{"Flux " + s.Distribution.Version + ": not all objects were reconciled in time"}
		}
	}
	slices.Sort(c.report.Unsettled)
}

// unknowns lists the fields whose effect only the controller determines.
var unknowns = []struct{ field, text string }{
	{"spec.postRenderers", "post-renderers"},
	{"spec.driftDetection", "drift detection"},
}

// listControllers lists the controllers, and the results that are unknown because other controller versions ran.
func (c *comparison) listControllers() {
	for _, name := range c.from.Repository.Components {
		controller := Controller{Name: name, From: c.from.Distribution.Tags[name], To: c.to.Distribution.Tags[name], Ran: c.to.Versions[name]}
		controller.Exact = controller.Ran == controller.To
		if !controller.Exact {
			controller.Unknown = c.unknown(name)
		}
		c.report.Controllers = append(c.report.Controllers, controller)
	}
}

// unknown describes the objects of a controller whose reconciliation by the next version is unknown.
func (c *comparison) unknown(controller string) string {
	count, special := map[string]int{}, []string{}
	for _, t := range sorted(c.to.Flux) {
		f := c.to.Flux[t]
		if f.Kind.Controller != controller {
			continue
		}
		count[f.Kind.Kind]++
		for _, u := range unknowns {
			value, _ := (controllers.Path{u.field}).Lookup(f.Object)
			if list, _ := value.([]any); len(list) > 0 || isMap(value) {
				special = append(special, t.String()+" ("+u.text+")")
			}
		}
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", kind, count[kind]))
	}
	if len(parts) == 0 {
		return ""
	}
	text := "how it reconciles " + strings.Join(parts, ", ")
	if len(special) > 0 {
		text += ", especially " + strings.Join(special, ", ")
	}
	return text
}

func isMap(value any) bool {
	m, ok := value.(map[string]any)
	return ok && len(m) > 0
}

// compareObjects compares the objects of both sides by their owners.
func (c *comparison) compareObjects() {
	owners := map[controllers.ID]*builds.Pair{}
	var order []controllers.ID
	seen := map[controllers.ID]bool{}
	add := func(s *testrun.Run, side func(*builds.Pair) **repository.Rendering) {
		for _, ref := range sorted(s.Objects) {
			o := s.Objects[ref]
			seen[ref] = true
			owner := c.owner(o)
			key := controllers.IDOf(owner.Object)
			if owners[key] == nil {
				owners[key] = &builds.Pair{}
				order = append(order, key)
			}
			at := side(owners[key])
			if *at == nil {
				*at = &repository.Rendering{Owner: owner, Build: &build.Result{}}
			}
			(*at).Build.Objects = append((*at).Build.Objects, build.Object{Unstructured: c.normalized(s, o)})
		}
	}
	add(c.from, func(d *builds.Pair) **repository.Rendering { return &d.Before })
	add(c.to, func(d *builds.Pair) **repository.Rendering { return &d.After })
	c.report.Objects = len(seen)
	slices.SortFunc(order, func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) })
	var all []builds.Pair
	for _, key := range order {
		all = append(all, *owners[key])
	}
	for _, result := range builds.Compare(all) {
		result.Changes = slices.DeleteFunc(result.Changes, func(change diff.Change) bool { return change.Action == diff.Unchanged })
		for i, change := range result.Changes {
			result.Changes[i] = c.explain(result.Owner.ID, c.withoutDefaults(change))
		}
		result.Changes = slices.DeleteFunc(result.Changes, func(change diff.Change) bool { return change.Action == diff.Ignored })
		c.keep(result)
		if len(result.Changes) > 0 || result.NotCompared != nil {
			c.report.Changes = append(c.report.Changes, result)
		}
	}
}

// explain adds a note to a release change that the Flux version does not cause, because the same
// controller version has rendered the release in both sandboxes.
func (c *comparison) explain(owner controllers.ID, change diff.Change) diff.Change {
	k, _ := owner.Flux()
	if k.Release && change.Action == diff.Changed && c.from.Versions[k.Controller] == c.to.Versions[k.Controller] {
		change.Notes = append(change.Notes, "rendered by the same version of "+k.Controller+
			": the chart generates a new value on each rendering, or depends on the cluster's API versions")
	}
	return change
}

// keep replaces the deletions of an owner that is not reconciled by the next version: a controller
// that fails to apply objects does not delete them.
func (c *comparison) keep(result *diff.Result) {
	result.Warnings = nil
	blocked := c.blocker(result.Owner.ID, len(c.from.Flux))
	if blocked == "" {
		return
	}
	kept := len(result.Changes)
	result.Changes = slices.DeleteFunc(result.Changes, func(change diff.Change) bool { return change.Action == diff.Pruned || unowned(change) })
	if kept -= len(result.Changes); kept > 0 {
		result.NotCompared = &diff.Omission{
			Reason: output.Amount(kept, "object") + " not applied with Flux " + c.report.To + ", because " + blocked + " is not ready", Affected: true,
		}
	}
}

// unowned reports whether only the current version has applied an object.
func unowned(change diff.Change) bool {
	return change.Before != nil && change.After != nil &&
		len(controllers.Owners(change.Before.Object)) > 0 && len(controllers.Owners(change.After.Object)) == 0
}

// blocker returns the owner if it is not ready with the next version, or the nearest of its owners
// that is not, else "".
func (c *comparison) blocker(owner controllers.ID, depth int) string {
	if is, ok := c.to.Flux[owner]; ok || depth == 0 {
		if !ok || is.Kind.IsReady(is.Object) {
			return ""
		}
		return owner.String()
	}
	was, ok := c.from.Flux[owner]
	if !ok {
		return ""
	}
	above := c.owner(&unstructured.Unstructured{Object: was.Object})
	return c.blocker(controllers.IDOf(above.Object), depth-1)
}

// owner returns the Kustomization or HelmRelease that has applied an object, or the Kustomization of
// the cluster.
func (c *comparison) owner(o *unstructured.Unstructured) *unstructured.Unstructured {
	named := func(kind, namespace, name string) *unstructured.Unstructured {
		k, _ := controllers.FindKind(kind)
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": k.APIVersion(), "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name},
			// Otherwise, an object that only the current version has applied would not count as a change.
			"spec": map[string]any{"prune": true},
		}}
	}
	if owners := controllers.Owners(o.Object); len(owners) > 0 {
		return named(owners[0].Kind, owners[0].Namespace, owners[0].Name)
	}
	for _, root := range c.from.Initial() {
		if k, ok := controllers.KindOf(root.GroupVersionKind().Group, root.GetKind()); ok && k.Applies() {
			return named(k.Kind, root.GetNamespace(), root.GetName())
		}
	}
	return named("Kustomization", c.from.Repository.Namespace, "flux-system")
}

// withoutDefaults removes the differences of a Flux object that API defaults cause instead of
// manifests. They become notices, because existing objects keep their stored values.
func (c *comparison) withoutDefaults(change diff.Change) diff.Change {
	manifest := c.manifests[change.Object.ID]
	if manifest == nil {
		return change
	}
	return change.Without(func(path string) bool {
		if !strings.HasPrefix(path, "spec.") {
			return false
		}
		if _, set := (controllers.Path{path}).Lookup(manifest.Object); set {
			return false
		}
		c.find(Finding{
			Level: Notice, Rule: "default", Object: change.Object,
			Message: path + " is not in the manifest, and its default differs; existing objects keep the stored value",
		})
		return true
	})
}

// serverFields lists the fields that the API server and its controllers set to values that differ
// between two clusters. A field of a list stands for the field of each element.
var serverFields = []string{
	"status", "metadata.managedFields", "metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp",
	"metadata.selfLink", "metadata.ownerReferences.uid", "spec.claimRef.uid", "spec.claimRef.resourceVersion",
	"spec.ports.nodePort", "spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort", "spec.volumeName",
}

// serverKeys lists the labels (of an object, its selector and its pod template) and annotations with such values.
var serverKeys = []string{
	controllers.RequestAnnotation, "deployment.kubernetes.io/revision", "controller-uid", "batch.kubernetes.io/controller-uid",
}

// normalized returns an object without the fields that differ between any two clusters.
func (c *comparison) normalized(s *testrun.Run, o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	for _, field := range serverFields {
		remove(o.Object, strings.Split(field, "."))
	}
	// Objects are read in the version in which each side stores them, so that the comparison shows
	// the stored objects.
	if k, ok := controllers.KindOf(o.GroupVersionKind().Group, o.GetKind()); ok {
		o.SetAPIVersion(c.to.Storage(k))
	}
	o.Object, _ = portable(s, o.Object).(map[string]any)
	return o
}

// remove removes a field from an object, and from each element of a list.
func remove(value any, field []string) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			remove(element, field)
		}
	case map[string]any:
		if len(field) == 1 {
			delete(v, field[0])
			return
		}
		remove(v[field[0]], field[1:])
	}
}

// portable returns a value without keys and addresses of this sandbox.
func portable(s *testrun.Run, value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, field := range v {
			if !slices.Contains(serverKeys, key) {
				kept[key] = portable(s, field)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, element := range v {
			kept[i] = portable(s, element)
		}
		return kept
	case string:
		return strings.ReplaceAll(v, s.Sandbox.GitURL, "https://repository.invalid")
	}
	return value
}

// sorted returns the keys of a map in the order of their names.
func sorted[K interface {
	comparable
	fmt.Stringer
}, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return strings.Compare(a.String(), b.String()) })
}
