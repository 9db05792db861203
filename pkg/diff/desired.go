package diff

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// Desired holds the build of a Kustomization or a HelmRelease before and after a change of its
// source. One side is nil for an owner that is added or removed.
type Desired struct {
	Before, After *repository.Rendering
	// Kept reports whether the owner remains on the cluster although it is no longer in the source,
	// because nothing prunes it.
	Kept bool
}

// Builds compares builds with builds, without a cluster: it does not include the defaults of a
// server. An object that moves from one owner to another is a change of the second.
func Builds(all []Desired) []*Result {
	known := scopesOf(all)
	known.completeAll(all)
	moves := movesOf(all)
	results := make([]*Result, 0, len(all))
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

func movesOf(all []Desired) map[controllers.ID]move {
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

func (d Desired) owner() *unstructured.Unstructured {
	if d.After != nil {
		return d.After.Owner
	}
	return d.Before.Owner
}

func (d Desired) compare(moves map[controllers.ID]move, known scopes) *Result {
	result := &Result{Owner: controllers.VersionedIDOf(d.owner().Object), Builds: true}
	before, after := objectsOf(d.Before), objectsOf(d.After)
	c := &between{secrets: d.secrets(), renamed: renamed(before, after)}
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
				result.Changes = append(result.Changes, Change{Object: ref, Action: Skipped, Reason: "moves to " + m.to.String(), Moved: &m.to})
				continue
			}
			result.Changes = append(result.Changes, known.note(d.Before, d.removed(c, ref, o)))
		}
	}
	if result.Count(Encrypted) > 0 {
		result.NotCompared = &Omission{Reason: "encrypted documents change and are not decrypted: " + build.ErrUntrusted.Error(), Affected: true}
	}
	result.Path = folderOf(d.owner())
	result.Suspended, _, _ = unstructured.NestedBool(d.owner().Object, "spec", "suspend")
	if result.Suspended && result.Different() {
		result.Warnings = append(result.Warnings, result.Owner.String()+" is suspended: nothing is applied until it is resumed")
	}
	if d.Kept {
		result.Warnings = append(result.Warnings, result.Owner.String()+" stays on the cluster: its owner does not prune")
	}
	return result
}

// secrets returns the values of both sides that come from Secrets.
func (d Desired) secrets() []string {
	var all []string
	for _, s := range []*repository.Rendering{d.Before, d.After} {
		if s != nil {
			all = append(all, s.Build.SecretValues...)
		}
	}
	return all
}

// between compares the objects of two builds.
type between struct {
	secrets []string
	// renamed holds the kinds for which both builds have an object whose name differs on every
	// rendering.
	renamed map[schema.GroupKind]bool
}

func (c *between) desired(ref controllers.VersionedID, old build.Object, was bool, o build.Object, note string) Change {
	change := Change{Object: ref, Action: Created}
	if note != "" {
		change.Notes = []string{note}
	}
	reason := excluded(o.Object)
	switch {
	case reason != "":
		return Change{Object: ref, Action: Skipped, Reason: reason}
	case !was && c.unstableName(o):
		return Change{Object: ref, Action: Unstable, Notes: []string{unstableName}}
	case !was:
		return c.finish(change, build.Object{}, o)
	}
	old, o, unstable := stabilized(old, o)
	if len(unstable) > 0 {
		change.Notes = append(change.Notes, "not compared, because they differ on every rendering: "+strings.Join(unstable, ", "))
	}
	switch {
	case len(unstable) > 0 && apiequality.Semantic.DeepEqual(content(tidy(old.Object)), content(tidy(o.Object))):
		return Change{Object: ref, Action: Unstable, Notes: change.Notes}
	case apiequality.Semantic.DeepEqual(content(tidy(old.Object)), content(tidy(o.Object))):
		return Change{Object: ref, Action: Unchanged}
	case marked(o.Object, "ssa", "IfNotPresent"):
		return Change{Object: ref, Action: Skipped, Reason: group + "/ssa: IfNotPresent, and the object exists"}
	}
	change.Action = Changed
	return c.finish(change, old, o)
}

// removed returns the change of an object that is no longer in the source.
func (d Desired) removed(c *between, ref controllers.VersionedID, o build.Object) Change {
	change := Change{Object: ref, Action: Skipped}
	if c.unstableName(o) { // its counterpart is reported
		return Change{Object: ref, Action: Skipped, Reason: unstableName}
	}
	owner := d.owner().Object
	policy := controllers.Path{"spec.deletionPolicy"}.String(owner)
	prunes := controllers.Path{"spec.prune"}.String(owner) == "true"
	if d.After == nil && (policy == "Delete" || policy == "WaitForTermination") {
		prunes = true
	}
	switch reason := excluded(o.Object); {
	case d.Kept:
		change.Reason = "its owner stays on the cluster"
	case o.Ahead:
		change.Reason = crdsKept
	case d.After == nil && controllers.Path{"spec.suspend"}.String(owner) == "true":
		change.Reason, change.Orphaned = "the "+d.owner().GetKind()+" is deleted while it is suspended", true
	case build.IsHelmRelease(d.owner()):
		if hasKeepPolicy(o.Object) {
			change.Reason = keepPolicy + ": keep"
			return change
		}
		change.Action = Pruned
	case !prunes || d.After == nil && policy == "Orphan":
		change.Reason, change.Orphaned = "the Kustomization does not prune", true
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

// finish adds the fields that differ, with secret values masked.
func (c *between) finish(change Change, old, young build.Object) Change {
	before, after := c.shown(old), c.shown(young)
	both := before != nil && after != nil
	encrypted := stillEncrypted(old) || stillEncrypted(young)
	for _, o := range []build.Object{old, young} {
		if o.Unstructured != nil {
			mask(change.Object, o.Object, content(before), content(after), o.Secret)
		}
	}
	maskObjects(before, after, c.secrets, old.Encrypted || young.Encrypted)
	change.Before, change.After = before, after
	change.Digest = maskedDigest(old, young, before, after)
	if both {
		change.Fields = Fields(content(before), content(after))
	}
	switch {
	case encrypted && (old.Withheld || young.Withheld):
		change.Notes = append(change.Notes, "encrypted: not decrypted: "+build.ErrUntrusted.Error())
		if change.Action == Changed {
			change.Action = Encrypted
		}
	case encrypted && change.Action == Changed && len(change.Fields) == 0:
		change.Notes = append(change.Notes, "encrypted: the file changed; no key available to decrypt the values")
	case encrypted && change.Action != Pruned:
		change.Notes = append(change.Notes, "encrypted: no key available to decrypt the values")
	case change.Action == Changed && len(change.Fields) == 0 && len(Fields(content(tidy(old.Object)), content(tidy(young.Object)))) == 0:
		return Change{Object: change.Object, Action: Unchanged}
	}
	change.Images = images(content(before), content(after))
	change.explainMasks()
	return change
}

// shown returns a copy of the object with the values that SOPS encrypted masked.
func (c *between) shown(o build.Object) *unstructured.Unstructured {
	if o.Unstructured == nil {
		return nil
	}
	masked, _ := build.Masked(o.Unstructured)
	return tidy(masked.Object)
}

// stillEncrypted reports whether an object is still encrypted.
func stillEncrypted(o build.Object) bool {
	return o.Unstructured != nil && item{Unstructured: o.Unstructured, built: o}.encrypted()
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
			text = fmt.Append(nil, o.Unstructured) // not for values decoded from YAML
		}
		sum.Write(fmt.Appendf(nil, "%d %s", len(text), text))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// sameContent reports whether the shown copy of an object has no masked values.
func sameContent(o build.Object, shown *unstructured.Unstructured) bool {
	return o.Unstructured == nil || apiequality.Semantic.DeepEqual(content(tidy(o.Object)), content(shown))
}
