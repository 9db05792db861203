package diff

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Desired is what a Kustomization or a HelmRelease brings before and after a
// change of its source. Where it comes or goes, one side is nil.
type Desired struct {
	Before, After *Side
	// Kept tells that the object itself stays on the cluster although it is in
	// the source no more: nobody prunes it.
	Kept bool
}

// Side is one side of a Desired.
type Side struct {
	// Owner is the Kustomization or HelmRelease.
	Owner *unstructured.Unstructured
	Build *build.Result
	// Namespace is where objects without a namespace go, as those of charts.
	Namespace string
}

// key is what makes an object the same on another side.
func (s *Side) key(o build.Object) Ref {
	ref := RefOf(o.Unstructured).identity()
	if ref.Namespace == "" {
		ref.Namespace = s.Namespace
	}
	return ref
}

// Builds compares builds with builds, without a cluster: fields that only a
// server would fill in are not seen. An object that one owner gives up and
// another takes over is a change of the second.
func Builds(all []Desired) []*Result {
	moves, known := movesOf(all), scopesOf(all)
	results := make([]*Result, 0, len(all))
	for _, d := range all {
		results = append(results, d.compare(moves, known))
	}
	return results
}

// identified are the objects of a build by what they are.
type identified map[Ref]build.Object

func (s *Side) objects() identified {
	found := identified{}
	if s == nil {
		return found
	}
	for _, o := range s.Build.Objects {
		found[s.key(o)] = o
	}
	return found
}

// move is an object on its way from one owner to another.
type move struct {
	object   build.Object
	from, to Ref
}

func movesOf(all []Desired) map[Ref]move {
	gone, come := map[Ref]move{}, map[Ref]Ref{}
	for _, d := range all {
		before, after := d.Before.objects(), d.After.objects()
		for ref, o := range before {
			if _, stays := after[ref]; !stays {
				gone[ref] = move{object: o, from: RefOf(d.Before.Owner)}
			}
		}
		for ref := range after {
			if _, was := before[ref]; !was {
				come[ref] = RefOf(d.After.Owner)
			}
		}
	}
	moves := map[Ref]move{}
	for ref, m := range gone {
		if to, ok := come[ref]; ok {
			m.to = to
			moves[ref] = m
		}
	}
	return moves
}

func (d Desired) owner() *unstructured.Unstructured {
	if d.After != nil {
		return d.After.Owner
	}
	return d.Before.Owner
}

func (d Desired) compare(moves map[Ref]move, known scopes) *Result {
	result := &Result{Owner: RefOf(d.owner()), Builds: true}
	before, after := d.Before.objects(), d.After.objects()
	c := &between{secrets: d.secrets()}
	if d.After != nil {
		for _, o := range d.After.Build.Objects {
			ref := known.ref(d.After, o)
			key := d.After.key(o)
			old, was := before[key]
			var note string
			if m, moved := moves[key]; moved && !was {
				old, was = m.object, true
				note = fmt.Sprintf("it moves here from %s: where that one is pruned first, it is deleted and created anew", m.from)
			}
			result.Changes = append(result.Changes, c.desired(ref, old, was, o, note))
		}
	}
	if d.Before != nil {
		for _, o := range d.Before.Build.Objects {
			ref := known.ref(d.Before, o)
			key := d.Before.key(o)
			if _, stays := after[key]; stays {
				continue
			}
			if m, moved := moves[key]; moved {
				result.Changes = append(result.Changes, Change{Object: ref, Action: Skipped, Reason: "it moves to " + m.to.String()})
				continue
			}
			result.Changes = append(result.Changes, d.removed(c, ref, o))
		}
	}
	if suspended, _, _ := unstructured.NestedBool(d.owner().Object, "spec", "suspend"); suspended && result.Different() {
		result.Warnings = append(result.Warnings, result.Owner.String()+" is suspended: nothing happens until it is resumed")
	}
	if d.Kept {
		result.Warnings = append(result.Warnings, result.Owner.String()+" stays on the cluster: nothing prunes it")
	}
	return result
}

// secrets are the values on both sides that came out of Secrets.
func (d Desired) secrets() []string {
	var all []string
	for _, s := range []*Side{d.Before, d.After} {
		if s != nil {
			all = append(all, s.Build.SecretValues...)
		}
	}
	return all
}

// between compares objects of two builds.
type between struct{ secrets []string }

func (c *between) desired(ref Ref, old build.Object, was bool, o build.Object, note string) Change {
	change := Change{Object: ref, Action: Created}
	if note != "" {
		change.Notes = []string{note}
	}
	reason := excluded(o.Object)
	switch {
	case reason != "":
		return Change{Object: ref, Action: Skipped, Reason: reason}
	case !was:
		return c.finish(change, build.Object{}, o)
	case apiequality.Semantic.DeepEqual(content(tidy(old.Object)), content(tidy(o.Object))):
		return Change{Object: ref, Action: Unchanged}
	case marked(o.Object, "ssa", "IfNotPresent"):
		return Change{Object: ref, Action: Skipped, Reason: group + "/ssa: IfNotPresent, and it is there"}
	}
	change.Action = Changed
	return c.finish(change, old, o)
}

// removed tells what becomes of an object that the source has no more.
func (d Desired) removed(c *between, ref Ref, o build.Object) Change {
	change := Change{Object: ref, Action: Skipped}
	owner := d.owner().Object
	policy := controllers.Path{"spec.deletionPolicy"}.String(owner)
	prunes := controllers.Path{"spec.prune"}.String(owner) == "true"
	if d.After == nil && (policy == "Delete" || policy == "WaitForTermination") {
		prunes = true
	}
	switch reason := excluded(o.Object); {
	case d.Kept:
		change.Reason = "nothing prunes what brings it"
	case o.Ahead:
		change.Reason = crdsStay
	case build.IsHelmRelease(d.owner()):
		if keeps(o.Object) {
			change.Reason = keepPolicy + ": keep"
			return change
		}
		change.Action = Pruned
	case !prunes || d.After == nil && policy == "Orphan":
		change.Reason = "the Kustomization does not prune"
	case marked(o.Object, "prune", "disabled"):
		change.Reason = group + "/prune: disabled"
	case reason != "":
		change.Reason = reason
	default:
		change.Action = Pruned
	}
	if change.Action != Pruned {
		return change
	}
	return c.finish(change, o, build.Object{})
}

// finish fills in what differs, with secret values masked.
func (c *between) finish(change Change, old, young build.Object) Change {
	before, after := c.shown(old), c.shown(young)
	both := before != nil && after != nil
	encrypted := sealed(old) || sealed(young)
	for _, o := range []build.Object{old, young} {
		if o.Unstructured != nil {
			mask(change.Object, o.Object, content(before), content(after), o.Secret)
		}
	}
	veilObjects(before, after, c.secrets, old.Encrypted || young.Encrypted)
	change.Before, change.After = before, after
	if both {
		change.Fields = Fields(content(before), content(after))
	}
	switch {
	case encrypted && change.Action == Changed && len(change.Fields) == 0:
		change.Notes = append(change.Notes, "encrypted: the file is another one, and no key at hand tells in what")
	case encrypted && change.Action != Pruned:
		change.Notes = append(change.Notes, "encrypted: no key at hand tells its values")
	case change.Action == Changed && len(change.Fields) == 0 && len(Fields(content(tidy(old.Object)), content(tidy(young.Object)))) == 0:
		return Change{Object: change.Object, Action: Unchanged}
	}
	change.Images = images(content(before), content(after))
	change.Dangers = append(change.Dangers, dangers(change)...)
	return change
}

// shown is the object without what SOPS has encrypted in it.
func (c *between) shown(o build.Object) *unstructured.Unstructured {
	if o.Unstructured == nil {
		return nil
	}
	masked, _ := build.Masked(o.Unstructured)
	return tidy(masked.Object)
}

// sealed tells that nobody here has decrypted an object.
func sealed(o build.Object) bool {
	return o.Unstructured != nil && item{Unstructured: o.Unstructured, built: o}.encrypted()
}
