package diagnose

import (
	"context"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// youngProgress is the time that a reconciliation may take before it is a
// problem.
const youngProgress = time.Minute

// verifier checks the applied objects of an applier. It lists the metadata of the objects in the
// inventory and other inventories, renders the desired state, and sends dry runs.
type verifier struct {
	*judge
	contents *contents
}

// verify checks a ready object for problems that its status does not report:
// applied objects that are missing, changed, encrypted or applied by other
// owners, and failed notifications.
func (s *verifier) verify(ctx context.Context, v *Verdict, t controllers.ID) {
	o, there := s.objects[t]
	if !there {
		return
	}
	sub := s.subject(kindOf(t), o)
	if sub.kind.Suspension.Is(o) {
		return
	}
	if sub.kind.Manager == "" || len(controllers.Managed(o)) == 0 {
		return
	}
	if remote(o) {
		v.Unknown = append(v.Unknown, inAnotherCluster(t))
		return
	}
	rendered, err := s.contents.desiredOf(ctx, sub)
	inv := s.readInventory(ctx, sub, rendered)
	v.Unknown = append(append(v.Unknown, inv.unknown...), unrendered(t, err)...)
	if rendered == nil {
		v.Unknown = append(v.Unknown, inv.finishedJobs()...)
	}
	if c, ok := inv.missing(s.Doctor, rendered.expires); ok {
		v.Cases = append(v.Cases, c)
	}
	v.Cases = append(v.Cases, inv.blocked(s.installation)...)
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

func inAnotherCluster(t controllers.ID) string {
	return "the objects of " + t.String() + ", which are in another cluster"
}

// compare adds the cases of applied objects that have drifted or contain
// encrypted values.
func (s *verifier) compare(ctx context.Context, v *Verdict, sub subject, inv *inventory) {
	owner := sub.id()
	under := func(f Finding, message string) {
		first := Finding{Object: owner, Code: "incomplete", Message: message}
		v.Cases = append(v.Cases, Case{Object: owner, Root: f, Chain: []Finding{first, f}})
	}
	found, unknown := s.drift(ctx, sub, inv.rendered, inv.suspects)
	for _, f := range found {
		under(f, "an object in its inventory has drifted")
	}
	v.Unknown = append(v.Unknown, unknown...)
	if f, ok := undecrypted(sub, inv.rendered.objects); ok {
		under(f, "an object in its inventory contains encrypted values")
	}
}

// finishedJobs removes missing Jobs from absent: without the desired state it
// is unknown whether they expired.
func (inv *inventory) finishedJobs() (unknown []string) {
	for t, gone := range inv.absent {
		if gone && t.Kind == "Job" {
			unknown = append(unknown, t.String()+" does not exist: it expired after it finished, or it was deleted")
			delete(inv.absent, t)
		}
	}
	return unknown
}

// expires reports whether an object is deleted after it finishes, such as a Job
// with a time to live.
func (d *desired) expires(t controllers.ID) bool {
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

// grace returns the time for which a finding is not yet a problem, or zero if the finding does not
// resolve without intervention.
func (f Finding) grace() time.Duration {
	switch f.Code {
	case "progressing", "unreconciled", "waiting":
		return youngProgress
	case "deleting":
		return deletionGrace
	default:
		return 0
	}
}

// young reports whether the case is a reconciliation or deletion that has just
// started.
func (c Case) young(now time.Time) bool {
	return !c.Root.Since.IsZero() && now.Sub(c.Root.Since) < c.Root.grace()
}

// separate moves the cases of young progress, from an index on, to Progress and
// adjusts the counts.
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

// Inventory adds the cases of missing objects, and of objects that are being
// deleted, in the tree of a healthy object.
func (a *Surroundings) Inventory(d Doctor, root *tree.Node) {
	k, o := a.Link.Kind, a.Link.Live
	if root == nil || k.Manager == "" || k.Suspension.Is(o) || !k.IsReady(o) {
		return
	}
	if _, deleting := deletedAt(o); deleting {
		return
	}
	s := &installation{Doctor: d}
	inv := &inventory{subject: d.subject(k, o), absent: map[controllers.ID]bool{}, live: map[controllers.ID]controllers.Object{}}
	for _, n := range root.Children {
		t := n.Object
		inv.targets = append(inv.targets, t)
		inv.absent[t] = n.Status == tree.NotFound
		inv.live[t] = n.Deletion()
	}
	v, own := &a.Verdict, len(a.Verdict.Cases)
	v.Unknown = append(v.Unknown, inv.finishedJobs()...)
	if c, ok := inv.missing(d, func(controllers.ID) bool { return false }); ok {
		v.Cases = append(v.Cases, c)
	}
	v.Cases = append(v.Cases, inv.blocked(s)...)
	v.separate(own, d.Now)
}
