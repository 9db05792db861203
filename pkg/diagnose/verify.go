package diagnose

import (
	"context"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// youngProgress is how long a reconciliation may run before it is a problem.
const youngProgress = time.Minute

// verify looks at an object that says that it is ready for what it does not
// tell: objects that it has applied and that are gone, changed, encrypted or
// applied by others as well, and notifications that are not delivered.
func (s *snapshot) verify(ctx context.Context, v *Verdict, t controllers.Target) {
	o, there := s.objects[t]
	if !there {
		return
	}
	sub := s.subject(s.kindOf(t), o)
	if sub.kind.Suspension.Is(o) {
		return
	}
	if s.delivers(t) {
		s.undelivered(ctx, v, t)
	}
	if sub.kind.Manager == "" || len(sub.kind.Managed(o)) == 0 {
		return
	}
	if remote(o) {
		v.Unknown = append(v.Unknown, inAnotherCluster(t))
		return
	}
	rendered, err := s.desiredOf(ctx, sub)
	inv := s.readInventory(ctx, sub, rendered)
	v.Unknown = append(append(v.Unknown, inv.unknown...), unrendered(t, err)...)
	if rendered == nil {
		v.Unknown = append(v.Unknown, inv.finishedJobs()...)
	}
	if c, ok := inv.missing(s, rendered.expires); ok {
		v.Cases = append(v.Cases, c)
	}
	v.Cases = append(v.Cases, inv.blocked(s)...)
	contests, unknown := inv.contested(ctx, s)
	v.Cases, v.Unknown = append(v.Cases, contests...), append(v.Unknown, unknown...)
	if rendered != nil {
		s.compare(ctx, v, sub, inv)
	}
}

// remote reports whether an object applies to another cluster.
func remote(o controllers.Object) bool {
	_, is := controllers.Path{"spec.kubeConfig"}.Lookup(o)
	return is
}

func inAnotherCluster(t controllers.Target) string {
	return "the objects of " + t.String() + ", which are in another cluster"
}

// compare adds the cases of applied objects that have drifted or are encrypted.
func (s *snapshot) compare(ctx context.Context, v *Verdict, sub subject, inv *inventory) {
	owner := targetOf(sub.kind, sub.object)
	under := func(f Finding, message string) {
		first := Finding{Object: owner, Code: "incomplete", Message: message}
		v.Cases = append(v.Cases, Case{Object: owner, Root: f, Chain: []Finding{first, f}})
	}
	found, unknown := s.drift(ctx, sub, inv.rendered, inv.suspects)
	for _, f := range found {
		under(f, "an object in its inventory is not as applied")
	}
	v.Unknown = append(v.Unknown, unknown...)
	if f, ok := s.undecrypted(sub, inv.rendered.objects); ok {
		under(f, "an object in its inventory holds encrypted values")
	}
}

// finishedJobs says which Jobs do not exist where nothing tells whether they
// were to be deleted once they are finished. They are missing no more.
func (inv *inventory) finishedJobs() (unknown []string) {
	for t, gone := range inv.absent {
		if gone && t.Kind == "Job" {
			unknown = append(unknown, t.String()+" does not exist: deleted when it was finished, or by somebody")
			delete(inv.absent, t)
		}
	}
	return unknown
}

// expires reports whether an object is deleted on purpose when it is done, as
// a Job with a time to live.
func (d *desired) expires(t controllers.Target) bool {
	if d == nil {
		return false
	}
	o, ok := d.of(t)
	if !ok {
		return false
	}
	_, expires := (controllers.Path{"spec.ttlSecondsAfterFinished"}).Lookup(o.Object)
	return expires
}

// patience is how long what a finding tells of may last before it is a problem;
// zero for what does not pass by itself.
func (f Finding) patience() time.Duration {
	switch f.Code {
	case "progressing", "unreconciled", "waiting":
		return youngProgress
	case "deleting":
		return deletionGrace
	default:
		return 0
	}
}

// young reports whether a case is only that something is being reconciled, or
// deleted, since a moment ago.
func (c Case) young(now time.Time) bool {
	return !c.Root.Since.IsZero() && now.Sub(c.Root.Since) < c.Root.patience()
}

// separate takes the cases that are only young progress out of those from an
// index on, and out of the counts.
func (v *Verdict) separate(from int, now time.Time) {
	kept := v.Cases[:from]
	for _, c := range v.Cases[from:] {
		if c.young(now) {
			v.Progress = append(v.Progress, c)
			v.RootCauses, v.Problems = max(0, v.RootCauses-1), max(0, v.Problems-1-len(c.Blocks))
		} else {
			kept = append(kept, c)
		}
	}
	v.Cases = kept
}

// Inventory adds the case of objects that the tree of a healthy object does not
// find: they were deleted outside Flux.
func (a *Surroundings) Inventory(d Doctor, root *tree.Node) {
	k, o := a.Link.Kind, a.Link.Live
	if root == nil || k.Manager == "" || k.Suspension.Is(o) || !fine(k, o) {
		return
	}
	if _, deleting := deletedAt(o); deleting {
		return
	}
	s := &snapshot{Doctor: d}
	inv := &inventory{subject: s.subject(k, o), absent: map[controllers.Target]bool{}}
	for _, n := range root.Children {
		t := target(n.Object)
		inv.targets = append(inv.targets, t)
		inv.absent[t] = n.Status == tree.NotFound
	}
	a.Verdict.Unknown = append(a.Verdict.Unknown, inv.finishedJobs()...)
	if c, ok := inv.missing(s, func(controllers.Target) bool { return false }); ok {
		a.Verdict.Cases = append(a.Verdict.Cases, c)
	}
}
