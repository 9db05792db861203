// Package builds compares two builds of Kustomizations and HelmReleases without a cluster.
package builds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/policy"
	"github.com/fluxkit/flux/pkg/repository"
)

// Pair holds the build of a Kustomization or a HelmRelease before and after a change of its
// source. One side is nil for an owner that is added or removed.
type Pair struct {
	Before, After *repository.Rendering
	// Kept reports whether the owner remains on the cluster although it is no longer in the source,
	// because nothing prunes it.
	Kept bool
	// Warning is reported if the owner changes.
	Warning string
	// Lenient reports whether the controller accepts variables without a value.
	Lenient bool
}

// Compare returns the changes of each pair. It does not include server defaults. An object that
// moves from one owner to another is a change of the new owner.
func Compare(all []Pair) []*diff.Result {
	known := scopesOf(all)
	known.complete(all)
	moves := movesOf(all)
	results := make([]*diff.Result, 0, len(all))
	for _, d := range all {
		results = append(results, d.compare(moves, known))
	}
	return results
}

// identified holds the objects of a build by identity.
type identified map[controllers.ID]build.Object

func objectsOf(r *repository.Rendering) identified {
	found := identified{}
	if r == nil {
		return found
	}
	for _, o := range r.Build.Objects {
		found[r.ID(o)] = o
	}
	return found
}

// move is an object that moves from one owner to another.
type move struct {
	object   build.Object
	from, to controllers.VersionedID
}

func movesOf(all []Pair) map[controllers.ID]move {
	removed, added := map[controllers.ID]move{}, map[controllers.ID]controllers.VersionedID{}
	for _, d := range all {
		before, after := objectsOf(d.Before), objectsOf(d.After)
		for ref, o := range before {
			if _, stays := after[ref]; !stays {
				removed[ref] = move{object: o, from: controllers.VersionedIDOf(d.Before.Owner.Object)}
			}
		}
		for ref := range after {
			if _, was := before[ref]; !was {
				added[ref] = controllers.VersionedIDOf(d.After.Owner.Object)
			}
		}
	}
	moves := map[controllers.ID]move{}
	for ref, m := range removed {
		if to, ok := added[ref]; ok {
			m.to = to
			moves[ref] = m
		}
	}
	return moves
}

// sides returns the builds that exist.
func (d Pair) sides() []*repository.Rendering {
	return slices.DeleteFunc([]*repository.Rendering{d.Before, d.After}, func(r *repository.Rendering) bool { return r == nil })
}

func (d Pair) owner() *unstructured.Unstructured {
	if d.After != nil {
		return d.After.Owner
	}
	return d.Before.Owner
}

func (d Pair) compare(moves map[controllers.ID]move, known scopes) *diff.Result {
	result := diff.NewResult(d.owner())
	result.Builds = true
	before, after := objectsOf(d.Before), objectsOf(d.After)
	c := &between{secrets: d.secrets(), renamed: renamed(before, after), policies: build.IsKustomization(d.owner()), lenient: d.Lenient}
	if d.After != nil {
		for _, o := range d.After.Build.Objects {
			ref := known.ref(d.After, o)
			key := d.After.ID(o)
			old, was := before[key]
			var note string
			var from *controllers.VersionedID
			if m, moved := moves[key]; moved && !was {
				old, was, from = m.object, true, &m.from
				note = fmt.Sprintf("moves here from %s: if %[1]s is pruned first, the object is deleted and recreated", m.from)
			}
			change := known.note(d.After, c.desired(ref, old, was, o, note))
			change.Moved = from
			result.Changes = append(result.Changes, change)
		}
	}
	if d.Before != nil {
		for _, o := range d.Before.Build.Objects {
			ref := known.ref(d.Before, o)
			key := d.Before.ID(o)
			if _, stays := after[key]; stays {
				continue
			}
			if m, moved := moves[key]; moved {
				result.Changes = append(result.Changes, diff.Change{Object: ref, Action: diff.Skipped, Reason: "moves to " + m.to.String(), Moved: &m.to})
				continue
			}
			result.Changes = append(result.Changes, known.note(d.Before, d.removed(c, ref, o)))
		}
	}
	result.Changes = append(result.Changes, d.hooks(c, known)...)
	if result.Count(diff.Encrypted) > 0 {
		result.NotCompared = &diff.Omission{Reason: "encrypted documents change and are not decrypted: " + build.ErrUntrusted.Error(), Affected: true}
	}
	if result.Suspended && result.Different() {
		result.Warnings = append(result.Warnings, result.Owner.String()+" is suspended: nothing is applied until it is resumed")
	}
	if d.Warning != "" && result.Different() {
		result.Warnings = append(result.Warnings, result.Owner.String()+": "+d.Warning)
	}
	if d.Kept {
		result.Warnings = append(result.Warnings, result.Owner.String()+" stays on the cluster: its owner does not prune")
	}
	return result
}

// secrets returns the values of both sides that come from Secrets.
func (d Pair) secrets() []string {
	var all []string
	for _, s := range d.sides() {
		all = append(all, s.Build.SecretValues...)
	}
	return all
}

// between compares the objects of two builds.
type between struct {
	secrets []string
	// renamed holds the kinds of which both builds have an object whose name differs on every
	// rendering.
	renamed map[schema.GroupKind]bool
	// policies is set if the controller follows the annotations of kustomize-controller.
	policies bool
	lenient  bool
}

func (c *between) desired(ref controllers.VersionedID, old build.Object, was bool, o build.Object, note string) diff.Change {
	change := diff.Change{Object: ref, Action: diff.Created}
	for _, name := range o.Unset {
		if !c.lenient && !slices.Contains(old.Unset, name) {
			change.Unset = append(change.Unset, name)
		}
	}
	if note != "" {
		change.Notes = []string{note}
	}
	reason := ""
	if c.policies {
		reason = policy.Excluded(o.Object)
	}
	switch {
	case reason != "":
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: reason}
	case !was && c.unstableName(o):
		return diff.Change{Object: ref, Action: diff.Unstable, Notes: []string{diff.UnstableName}}
	case !was:
		return c.finish(change, build.Object{}, o)
	}
	old, o, unstable := stabilized(old, o)
	if len(unstable) > 0 {
		change.Notes = append(change.Notes, "not compared, because they differ on every rendering: "+strings.Join(unstable, ", "))
	}
	same := apiequality.Semantic.DeepEqual(stored(old), stored(o))
	switch {
	case len(unstable) > 0 && same:
		return diff.Change{Object: ref, Action: diff.Unstable, Notes: change.Notes}
	case len(change.Unset) == 0 && same:
		return diff.Change{Object: ref, Action: diff.Unchanged}
	case c.policies && policy.Marked(o.Object, "ssa", "IfNotPresent"):
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: policy.IfNotPresent}
	}
	change.Action = diff.Changed
	return c.finish(change, old, o)
}

// stored returns the content of an object as the API server stores it: with the stringData of a Secret in data.
func stored(o build.Object) map[string]any {
	content := diff.Content(diff.Tidy(o.Object))
	if controllers.IDOf(o.Object).IsSecret() {
		if data, err := build.DataOf(o.Unstructured); err == nil {
			delete(content, "stringData")
			content["data"] = data
		}
	}
	return content
}

// removed returns the change of an object that is no longer in the source.
func (d Pair) removed(c *between, ref controllers.VersionedID, o build.Object) diff.Change {
	change := diff.Change{Object: ref, Action: diff.Skipped}
	if c.unstableName(o) { // its counterpart is reported
		return diff.Change{Object: ref, Action: diff.Skipped, Reason: diff.UnstableName}
	}
	owner := d.owner().Object
	kind, _ := controllers.IDOf(owner).Flux()
	deletion := controllers.Path{"spec.deletionPolicy"}.String(owner)
	prunes := kind.Prunes || controllers.Path{"spec.prune"}.String(owner) == "true"
	if d.After == nil && (deletion == "Delete" || deletion == "WaitForTermination") {
		prunes = true
	}
	reason := ""
	if c.policies {
		reason = policy.Excluded(o.Object)
	}
	switch {
	case d.Kept:
		change.Reason = "its owner stays on the cluster"
	case o.Ahead:
		change.Reason = policy.CRDsKept
	case d.After != nil && slices.Contains(d.After.Build.Excluded, ref):
		change.Reason = controllers.OperatorGroup + "/reconcile: disabled"
	case d.After == nil && kind.Suspension.Is(owner):
		change.Reason, change.Orphaned = "the "+d.owner().GetKind()+" is deleted while it is suspended", true
	case controllers.HasSetting(o.Object, kind.Keep.Key, kind.Keep.Value):
		change.Reason = kind.Keep.String()
	case kind.Release:
		change.Action = diff.Pruned
	case !prunes || d.After == nil && deletion == "Orphan":
		change.Reason, change.Orphaned = "the Kustomization does not prune", true
	case reason != "":
		change.Reason = reason
	default:
		change.Action = diff.Pruned
	}
	if change.Action != diff.Pruned {
		return change
	}
	return c.finish(change, o, build.Object{})
}

// finish adds the fields that differ, with secret values masked.
func (c *between) finish(change diff.Change, old, young build.Object) diff.Change {
	before, after := c.shown(old), c.shown(young)
	both := before != nil && after != nil
	encrypted := diff.Sealed(old) || diff.Sealed(young)
	for _, o := range []build.Object{old, young} {
		if o.Unstructured != nil {
			diff.Mask(change.Object, o.Object, diff.Content(before), diff.Content(after), o.Secret)
		}
	}
	diff.MaskTexts(before, after, c.secrets, old.Encrypted || young.Encrypted)
	change.Before, change.After = before, after
	change.Digest = maskedDigest(old, young, before, after)
	if both {
		change.Fields = diff.Fields(diff.Content(before), diff.Content(after))
	}
	switch {
	case encrypted && (old.Withheld || young.Withheld):
		change.Notes = append(change.Notes, "encrypted: not decrypted: "+build.ErrUntrusted.Error())
		if change.Action == diff.Changed {
			change.Action = diff.Encrypted
		}
	case encrypted && change.Action == diff.Changed && len(change.Fields) == 0:
		change.Notes = append(change.Notes, "encrypted: the file changed; no key available to decrypt the values")
	case encrypted && change.Action != diff.Pruned:
		change.Notes = append(change.Notes, "encrypted: no key available to decrypt the values")
	case both && change.Action == diff.Changed && len(change.Unset) == 0 && len(change.Fields) == 0 && len(diff.Fields(diff.Content(diff.Tidy(old.Object)), diff.Content(diff.Tidy(young.Object)))) == 0:
		return diff.Change{Object: change.Object, Action: diff.Unchanged}
	}
	change.Images = diff.ImagesOf(diff.Content(before), diff.Content(after))
	change.ExplainMasks()
	return change
}

// shown returns a copy of the object in which the values that SOPS encrypted are masked.
func (c *between) shown(o build.Object) *unstructured.Unstructured {
	if o.Unstructured == nil {
		return nil
	}
	masked, _ := build.Masked(o.Unstructured)
	return diff.Tidy(masked.Object)
}

// maskedDigest returns a digest of both versions of an object if any of their values is masked, or
// "" otherwise.
func maskedDigest(old, young build.Object, before, after *unstructured.Unstructured) string {
	if sameContent(old, before) && sameContent(young, after) {
		return ""
	}
	sum := sha256.New()
	for _, o := range []build.Object{old, young} {
		text, err := json.Marshal(o.Unstructured)
		if err != nil {
			text = fmt.Append(nil, o.Unstructured) // not reached for values decoded from YAML
		}
		sum.Write(fmt.Appendf(nil, "%d %s", len(text), text))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// sameContent reports whether the shown copy of an object has no masked values.
func sameContent(o build.Object, shown *unstructured.Unstructured) bool {
	return o.Unstructured == nil || apiequality.Semantic.DeepEqual(diff.Content(diff.Tidy(o.Object)), diff.Content(shown))
}

// renamed returns the kinds of which both builds have an object whose name differs on every
// rendering.
func renamed(before, after identified) map[schema.GroupKind]bool {
	kinds := func(objects identified) map[schema.GroupKind]bool {
		found := map[schema.GroupKind]bool{}
		for _, o := range objects {
			if diff.HasUnstableName(o) {
				found[o.GroupVersionKind().GroupKind()] = true
			}
		}
		return found
	}
	both := kinds(before)
	for kind := range both {
		both[kind] = kinds(after)[kind]
	}
	return both
}

// unstableName reports whether an object that only one build contains has a counterpart with
// another name in the other build.
func (c *between) unstableName(o build.Object) bool {
	return diff.HasUnstableName(o) && c.renamed[o.GroupVersionKind().GroupKind()]
}

// stabilized returns both objects with the same placeholder for values that differ on every
// rendering of both, and the paths of these values.
func stabilized(old, young build.Object) (build.Object, build.Object, []string) {
	var paths []string
	for _, path := range young.Unstable {
		both := slices.ContainsFunc(old.Unstable, func(other []string) bool { return slices.Equal(other, path) })
		if !both || len(path) == 0 {
			continue
		}
		if len(paths) == 0 {
			old.Unstructured, young.Unstructured = old.DeepCopy(), young.DeepCopy()
		}
		if diff.SetPlaceholder(old.Unstructured, path) && diff.SetPlaceholder(young.Unstructured, path) {
			paths = append(paths, strings.Join(path, "."))
		}
	}
	return old, young, paths
}
