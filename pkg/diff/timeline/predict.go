package timeline

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/diff/review"
)

// Prediction is the order in which the controllers are expected to make changes.
type Prediction struct {
	// Cluster is the directory of the cluster, if several are compared.
	Cluster string  `json:"cluster,omitempty"`
	Entries []Entry `json:"entries"`
	// Blocked lists the Kustomizations and HelmReleases that do not make their changes.
	Blocked []Blocked `json:"blocked"`
	// Unknown describes what could not be predicted.
	Unknown []string `json:"unknown"`
}

// Blocked is a Kustomization or HelmRelease that does not make its changes.
type Blocked struct {
	Object controllers.ID `json:"object"`
	Reason string         `json:"reason"`
}

// String returns the object and the reason.
func (b Blocked) String() string { return b.Object.String() + ": " + b.Reason }

// owner is a Kustomization or HelmRelease.
type owner struct {
	builds.Pair
	result *diff.Result
	ref    controllers.ID
	kind   controllers.Kind
	// parent applies the owner. definition is the change that parent makes to the owner.
	parent     *owner
	definition diff.Change
	children   []*owner
	// needs lists the owners in spec.dependsOn.
	needs []*owner
	// step is the position in the order, or 0 until it is known. failure is the reason why the owner
	// fails.
	step    int
	failure string
}

// live returns the owner after the change, or nil if the change removes it.
func (o *owner) live() *unstructured.Unstructured {
	if o.After == nil {
		return nil
	}
	return o.After.Owner
}

func (o *owner) field(path string) string {
	if o.live() == nil {
		return ""
	}
	return controllers.Path{path}.String(o.live().Object)
}

type prediction struct {
	*Prediction
	order  []*owner
	owners map[controllers.ID]*owner
	// before and after are the owners that apply an object.
	before, after map[controllers.ID][]*owner
}

// Predict returns the order in which the controllers make the changes of all owners of a cluster,
// including owners that do not change. results are the results of builds.Compare for these owners. It
// does not predict whether applied objects become ready, or what the API server and webhooks add to
// them.
func Predict(all []builds.Pair, results []*diff.Result) *Prediction {
	review.Apply(results, nil)
	p := &prediction{
		Prediction: &Prediction{Entries: []Entry{}, Blocked: []Blocked{}, Unknown: []string{}},
		owners:     map[controllers.ID]*owner{}, before: map[controllers.ID][]*owner{}, after: map[controllers.ID][]*owner{},
	}
	for i, d := range all {
		p.add(&owner{Pair: d, result: results[i], ref: results[i].Owner.ID})
	}
	p.link()
	for _, o := range p.order {
		p.step(o)
		o.failure = p.failing(o)
	}
	for _, o := range p.order {
		p.predict(o)
	}
	slices.SortStableFunc(p.Entries, func(a, b Entry) int { return cmp.Compare(a.Step, b.Step) })
	step, last := 0, 0
	for i := range p.Entries { // without the steps at which nothing changes
		if p.Entries[i].Step != last {
			step, last = step+1, p.Entries[i].Step
		}
		p.Entries[i].Step = step
	}
	return p.Prediction
}

// add indexes an owner and the objects that it applies.
func (p *prediction) add(o *owner) {
	o.kind, _ = controllers.KindOf(o.ref.Group, o.ref.Kind)
	p.order, p.owners[o.ref] = append(p.order, o), o
	for i, c := range o.result.Changes {
		if c.Hook != "" {
			continue
		}
		built := o.After != nil && i < len(o.After.Build.Objects)
		ref := c.Object.ID
		if built && c.Action == diff.Skipped {
			continue // it is not applied
		}
		if built {
			p.after[ref] = append(p.after[ref], o)
		}
		if !built || c.Action != diff.Created && c.Moved == nil {
			p.before[ref] = append(p.before[ref], o)
		}
	}
}

// link finds the parents and dependencies.
func (p *prediction) link() {
	for _, o := range p.order {
		for _, c := range o.result.Changes {
			if child := p.owners[c.Object.ID]; child != nil && child != o {
				child.parent, child.definition = o, c
				o.children = append(o.children, child)
			}
		}
		if o.live() == nil {
			continue
		}
		for _, t := range o.kind.DependenciesOf(o.live().Object) {
			if needed := p.owners[t]; needed != nil {
				o.needs = append(o.needs, needed)
			}
		}
	}
}

// redefined reports whether the definition of an owner changes.
func (o *owner) redefined() bool { return o.parent != nil && o.definition.Different() }

// step returns the position of an owner in the order.
func (p *prediction) step(o *owner) int {
	if o.step > 0 {
		return o.step
	}
	o.step = 1 // also ends the recursion of circular dependencies
	step := 1
	for _, needed := range o.needs {
		step = max(step, p.end(needed)+1)
	}
	if o.redefined() {
		step = max(step, p.step(o.parent)+1)
	}
	o.step = step
	return step
}

// end returns the position of the last change that the dependents of an owner wait for.
func (p *prediction) end(o *owner) int {
	end := p.step(o)
	if o.field("spec.wait") == "true" {
		for _, child := range o.children {
			end = max(end, p.step(child))
		}
	}
	return end
}

// needs reports whether an owner depends on another one, directly or indirectly.
func (p *prediction) needs(o, on *owner) bool {
	seen := map[*owner]bool{}
	for queue := []*owner{o}; len(queue) > 0; queue = queue[1:] {
		for _, needed := range queue[0].needs {
			if needed == on {
				return true
			}
			if !seen[needed] {
				seen[needed] = true
				queue = append(queue, needed)
			}
		}
	}
	return false
}

// failing returns why an owner cannot apply its objects, or "".
func (p *prediction) failing(o *owner) string {
	for _, c := range o.result.Changes {
		if c.Action == diff.Failed {
			return c.Object.String() + ": " + c.Reason
		}
		if field := immutable(c); field != "" && !o.forces(c) {
			return "field is immutable: " + field + " of " + c.Object.String()
		}
	}
	return ""
}

// immutable returns the immutable field that a change changes, or "".
func immutable(c diff.Change) string {
	for _, d := range c.Dangers {
		if d.Rule == diff.DangerImmutable && c.Action == diff.Changed {
			return d.Detail
		}
	}
	return ""
}

// forces reports whether kustomize-controller recreates an object with an immutable field that changes.
func (o *owner) forces(c diff.Change) bool {
	forced := func(u *unstructured.Unstructured) bool {
		return u != nil && controllers.HasSetting(u.Object, "kustomize.toolkit.fluxcd.io/force", "enabled")
	}
	return !o.kind.Release && (o.field("spec.force") == "true" || forced(c.Before) || forced(c.After))
}

// held returns why an owner does not make its changes, or "".
func (p *prediction) held(o *owner, seen map[*owner]bool) string {
	if seen[o] {
		return "circular spec.dependsOn"
	}
	seen[o] = true
	defer delete(seen, o)
	switch parent := o.parent; {
	case o.result.Suspended:
		return "it is suspended"
	case o.result.Withheld != nil:
		return o.result.Withheld.By.String() + " is suspended"
	case parent != nil && o.redefined() && parent.failure != "":
		return "its definition is not applied, because " + parent.ref.String() + " fails"
	case parent != nil && o.redefined() && p.held(parent, seen) != "":
		return "its definition is not applied, because " + parent.ref.String() + " is blocked"
	}
	for _, needed := range o.needs {
		if needed.failure != "" {
			return needed.ref.String() + " fails"
		}
		if p.held(needed, seen) != "" {
			return needed.ref.String() + " is blocked"
		}
	}
	return ""
}
