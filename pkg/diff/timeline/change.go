package timeline

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/repository"
)

// predict adds the changes that an owner makes.
func (p *prediction) predict(o *owner) {
	if omitted := o.result.NotCompared; omitted != nil {
		p.Unknown = append(p.Unknown, o.ref.String()+": "+omitted.Reason)
	}
	release, uncertain := o.release()
	if release == "" && !o.result.Different() && !p.claims(o) {
		return
	}
	if reason := p.held(o, map[*owner]bool{}); reason != "" {
		p.Blocked = append(p.Blocked, Blocked{o.ref, reason})
		return
	}
	if release != "" {
		p.Entries = append(p.Entries, Entry{Step: o.step, Object: o.ref, Action: Released, Message: release, By: &o.ref, Uncertain: uncertain})
	}
	if o.failure != "" {
		p.fail(o)
		return
	}
	for _, c := range o.result.Changes {
		p.change(o, c)
	}
}

// fail adds the failure of an owner, and the changes that it makes before it fails: kustomize-controller
// applies Namespaces, CRDs and ClusterRoles first, checks all others before it applies them, and prunes at
// the end.
func (p *prediction) fail(o *owner) {
	if o.kind.Release {
		p.Unknown = append(p.Unknown, o.ref.String()+": the objects that Helm changes before it fails, and the remediation")
	}
	for _, c := range o.result.Changes {
		if !o.kind.Release && c.Object.First() && c.Action != diff.Pruned && immutable(c) == "" {
			p.change(o, c)
		}
	}
	p.Entries = append(p.Entries, Entry{Step: o.step, Object: o.ref, Action: Failed, Message: o.failure, By: &o.ref})
}

// claims reports whether an owner takes over an object of another one.
func (p *prediction) claims(o *owner) bool {
	return slices.ContainsFunc(o.result.Changes, func(c diff.Change) bool { return c.Moved != nil && c.Action != diff.Skipped })
}

// change adds the change of an object.
func (p *prediction) change(o *owner, c diff.Change) {
	e := Entry{Step: o.step, Object: c.Object.ID, By: &o.ref}
	switch {
	case c.Hook != "" && c.After == nil:
		return // Helm no longer runs it
	case c.Hook != "" && c.Different():
		e.Action, e.Message = Created, "Helm hook: "+c.Hook
	case c.Moved != nil && c.Action != diff.Skipped:
		e = p.moved(o, c, e)
	case c.Action == diff.Created:
		e = p.created(o, e)
	case c.Action == diff.Pruned:
		e.Action = Deleted
	case c.Action == diff.Recreated, immutable(c) != "" && o.forces(c):
		e.Action, e.Message = Recreated, Interrupted
	case c.Different():
		e.Action = Changed
		if restarts(c) {
			e.Action = Restarted
		}
	default:
		return
	}
	p.Entries = append(p.Entries, e)
}

// restarts reports whether a change affects the pod template.
func restarts(c diff.Change) bool {
	return c.After != nil && Template(c.After.Object) != nil && slices.ContainsFunc(c.Fields, func(f diff.Field) bool {
		return f.Pointer == "/spec/template" || strings.HasPrefix(f.Pointer, "/spec/template/")
	})
}

// moved returns the entry of an object that moves to an owner. The previous owner prunes the object unless
// the new owner has labeled it by then.
func (p *prediction) moved(o *owner, c diff.Change, e Entry) Entry {
	e.Action = Changed
	if restarts(c) {
		e.Action = Restarted
	}
	e.Owners = []controllers.ID{c.Moved.ID, o.ref}
	from := p.owners[c.Moved.ID]
	switch {
	case from == nil:
		return uncertain(e, "it is unknown whether its owner deletes it")
	case from.kind.Release || o.kind.Release:
		e.Action = Recreated
		return uncertain(e, "whether it is deleted depends on which owner is reconciled first and on the Helm annotations")
	case !from.prunes(e.Object) || from.failure != "" || p.held(from, map[*owner]bool{}) != "" || from.live() != nil && p.needs(from, o):
		return e
	case p.needs(o, from):
		e.Action, e.Message = Recreated, Interrupted
		return e
	}
	e.Action = Recreated
	return uncertain(e, "it is recreated if "+from.ref.String()+" is reconciled before "+o.ref.String()+", which depends on timing")
}

func uncertain(e Entry, message string) Entry {
	e.Message, e.Uncertain = message, true
	return e
}

// prunes reports whether an owner deletes an object that leaves its source.
func (o *owner) prunes(ref controllers.ID) bool {
	if u := find(o.Before, ref); u != nil && controllers.HasSetting(u.Object, "kustomize.toolkit.fluxcd.io/prune", "disabled") {
		return false
	}
	if o.live() == nil {
		return controllers.Path{"spec.prune"}.String(o.Before.Owner.Object) == "true" && !o.Kept
	}
	return o.field("spec.prune") == "true"
}

// created returns the entry of an object that an owner has not applied before. If another owner also
// applies it, each reverts the other's changes.
func (p *prediction) created(o *owner, e Entry) Entry {
	e.Action = Created
	at := slices.IndexFunc(p.before[e.Object], func(other *owner) bool { return other != o })
	if at < 0 {
		return e
	}
	other := p.before[e.Object][at]
	e.Action, e.Owners = Changed, []controllers.ID{other.ref, o.ref}
	was, is := find(other.Before, e.Object), find(o.After, e.Object)
	if was == nil || is == nil {
		return uncertain(e, "its content is unknown")
	}
	if Template(is.Object) != nil && !apiequality.Semantic.DeepEqual(Template(was.Object), Template(is.Object)) {
		e.Action = Restarted
	}
	if slices.Contains(p.after[e.Object], other) {
		e.Message = "both apply it and revert each other's changes"
		if !p.needs(o, other) {
			e = uncertain(e, e.Message+" in an order that depends on timing")
		}
	}
	return e
}

// find returns an object of a build.
func find(s *repository.Rendering, ref controllers.ID) *unstructured.Unstructured {
	if s == nil {
		return nil
	}
	for _, o := range s.Build.Objects {
		is := controllers.IDOf(o.Unstructured.Object)
		if is == ref || is.Namespace == "" && s.Namespace == ref.Namespace && is.Name == ref.Name && is.Kind == ref.Kind && is.Group == ref.Group {
			return o.Unstructured
		}
	}
	return nil
}

// defined lists the fields of a HelmRelease whose change causes an upgrade, even if no object changes.
var defined = []string{
	"spec.values", "spec.valuesFrom", "spec.postRenderers", "spec.commonMetadata", "spec.chartRef",
	"spec.chart.spec.chart", "spec.chart.spec.version", "spec.chart.spec.sourceRef", "spec.chart.spec.valuesFiles",
}

// release returns the operation on the release of a HelmRelease, or "" if there is none.
func (o *owner) release() (operation string, uncertain bool) {
	switch {
	case !o.kind.Release || o.live() == nil:
		return "", false
	case o.Before == nil:
		return "Helm install", false
	case slices.ContainsFunc(defined, func(path string) bool {
		was, _ := controllers.Path{path}.Lookup(o.Before.Owner.Object)
		is, _ := controllers.Path{path}.Lookup(o.live().Object)
		return !apiequality.Semantic.DeepEqual(was, is)
	}):
		return "Helm upgrade", false
	case !o.result.Different():
		return "", false
	case o.field("spec.chart.spec.reconcileStrategy") != "Revision" && slices.Contains([]string{controllers.GitRepository, controllers.Bucket}, o.field("spec.chart.spec.sourceRef.kind")) && !valued(o.live()):
		return "Helm upgrade, if the chart version changes: spec.chart.spec.reconcileStrategy is not Revision", true
	}
	return "Helm upgrade", false
}

// valued reports whether a HelmRelease reads values from other objects.
func valued(hr *unstructured.Unstructured) bool { return len(build.DataReferences(hr)) > 0 }
