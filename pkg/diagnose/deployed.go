package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// leftMark is a label or annotation and its effect.
type leftMark struct{ key, value, effect string }

// leaveAlone lists the labels and annotations with which users exclude an object from
// reconciliation (kustomize-controller, "Controlling the apply behavior of resources").
var leaveAlone = []leftMark{
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled", "nothing is applied to it"},
	{"kustomize.toolkit.fluxcd.io/ssa", "Ignore", "nothing is applied to it"},
	{"kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", "it is created once and never updated"},
	{"helm.toolkit.fluxcd.io/driftDetection", "disabled", "its drift is not corrected"},
}

// Deployed diagnoses an object that Flux has applied, or that an applied object
// owns: the object, its applier and the source. The word is a resource type as
// in kubectl. It returns a NotFound error if the object does not exist and the
// reason is unknown. The verdict then contains what could not be read.
func (d Doctor) Deployed(ctx context.Context, word, namespace, name string) (Verdict, error) {
	v := Verdict{Looked: 1}
	trace, err := tree.TraceObject(ctx, d.Client.Config, "", word, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		c, ok, unknown := d.gone(ctx, word, namespace, name)
		v.Unknown = unknown
		if !ok {
			return v, err
		}
		v.Cases = append(v.Cases, c)
		return d.newDiagnosis().conclude(v), nil
	case errors.Is(err, tree.ErrUnmanaged):
		if v, managed := d.unlabeled(ctx, trace); !managed {
			return v, nil
		}
	case err != nil:
		return Verdict{}, err
	}
	s, err := d.inspectTrace(ctx, trace)
	if err != nil {
		return Verdict{}, err
	}
	s.deployed(ctx, &v, trace, word)
	return s.conclude(v), nil
}

// unlabeled searches the inventories for an object without owner labels. If an
// inventory contains the object, its owner becomes the applier of the trace.
// Otherwise the verdict is that Flux does not manage the object.
func (d Doctor) unlabeled(ctx context.Context, trace *tree.Trace) (v Verdict, managed bool) {
	applied := controllers.IDOf(trace.Applied)
	owners, unknown := d.appliersOf(ctx, controllers.Kinds, namespacesOf(applied), applied)
	s := d.newDiagnosis()
	if len(owners) > 0 {
		trace.Applier.Object = owners[0].kind.IDOf(owners[0].object)
		return v, true
	}
	f := Finding{
		Object: trace.Object, Code: "unmanaged", Message: "Flux does not manage it: it has no labels of Flux and is in no inventory",
		Remedies: []string{"add it to a source that a Kustomization applies"},
	}
	if len(unknown) > 0 {
		f.Message = "it has no labels of Flux"
	}
	return s.conclude(Verdict{Looked: 1, Cases: []Case{single(f)}, Unknown: unknown}), false
}

// deployed adds the cases of an applied object.
func (s *diagnosis) deployed(ctx context.Context, v *Verdict, trace *tree.Trace, word string) {
	applier, object := trace.Applier.Object, trace.Object
	s.workload(ctx, v, object)
	s.marked(v, trace, word)
	if f, ok := s.blockedDeletion(controllers.IDOf(trace.Applied), trace.Applied); ok {
		f.Details = append(f.Details, "it was applied by "+trace.Applier.Object.String())
		v.Cases = append(v.Cases, single(f))
		return
	}
	if apierrors.IsNotFound(trace.Applier.Err) {
		v.Cases = append(v.Cases, single(Finding{
			Object: object, Code: "orphaned", Message: fmt.Sprintf("it was applied by %s, which no longer exists", trace.Applier.Object),
			Remedies: []string{fmt.Sprintf("create %s again, or delete the object if it is not needed", trace.Applier.Object)},
		}))
		return
	}
	own := len(v.Cases)
	if s.consult(ctx, v, applier) {
		s.verifier.verifyOne(ctx, v, applier, trace.Applied)
	}
	v.Cases = append(v.Cases[:own], slices.DeleteFunc(v.Cases[own:], func(c Case) bool { return consequence(c, v.Cases[:own]) })...)
	for i := range v.Cases[own:] {
		c := &v.Cases[own+i]
		c.Object = object
		if c.Chain[0].Object != object { // the chain starts at the object
			c.Chain = append([]Finding{{Object: object, Code: "applied", Message: "it is applied by " + trace.Applier.Object.String()}}, c.Chain...)
		}
	}
}

// conclude completes the verdict on one object: it separates young progress
// from problems, and adds unread objects that could change the verdict.
func (s *diagnosis) conclude(v Verdict) Verdict {
	v.separate(0, s.Now)
	v.RootCauses, v.Problems = len(v.Cases), min(len(v.Cases), 1)
	v.Unknown = append(s.unknown(v.Cases), v.Unknown...)
	return v
}

// consequence reports whether the case of an applier follows from the case of a
// workload: it waits for the same pods.
func consequence(c Case, own []Case) bool {
	return slices.ContainsFunc(own, func(o Case) bool {
		return o.Root.Code == c.Root.Code && c.Root.Object != o.Root.Object && strings.HasSuffix(c.Root.Message, o.Root.Message)
	})
}

// workload adds the cases of pods that are not ready.
func (s *diagnosis) workload(ctx context.Context, v *Verdict, object controllers.ID) {
	troubles, unknown := s.workloads.troubles(ctx, []controllers.ID{object})
	v.Unknown = append(v.Unknown, unknown...)
	for _, trouble := range troubles {
		v.Cases = append(v.Cases, single(trouble.finding(object)))
	}
}

// marked adds the cases of labels and annotations that exclude an object from
// reconciliation.
func (s *diagnosis) marked(v *Verdict, trace *tree.Trace, word string) {
	object := trace.Object
	for _, l := range leaveAlone {
		if !controllers.HasSetting(trace.Applied, l.key, l.value) {
			continue
		}
		at, command := "annotation", "annotate"
		if controllers.Annotation(trace.Applied, l.key) == "" {
			at, command = "label", "label"
		}
		v.Cases = append(v.Cases, single(Finding{
			Object: object, Code: "disabled", Message: fmt.Sprintf("it has the %s %s: %s: %s", at, l.key, l.value, l.effect),
			Remedies: []string{fmt.Sprintf("remove the %s in the source, or on the cluster: kubectl%s %s %s %s %s-", at, inNamespace(object.Namespace), command, word, object.Name, l.key)},
		}))
	}
}

// verifyOne checks one object of a healthy applier, as verify checks all of
// them.
func (s *verifier) verifyOne(ctx context.Context, v *Verdict, applier controllers.ID, o controllers.Object) {
	t := controllers.IDOf(o)
	sub := s.subject(kindOf(applier), s.objects[applier])
	if sub.object == nil || sub.kind.Suspension.Is(sub.object) || leftAlone(o) {
		return
	}
	if remote(sub.object) {
		v.Unknown = append(v.Unknown, inAnotherCluster(applier))
		return
	}
	one := &inventory{subject: sub, targets: []controllers.ID{t}, live: map[controllers.ID]controllers.Object{t: o}}
	contests, unknown := one.contested(ctx, s)
	v.Unknown = append(v.Unknown, unknown...)
	for _, c := range contests {
		v.Cases = append(v.Cases, single(c.Root))
	}
	rendered, err := s.contents.desiredOf(ctx, sub)
	v.Unknown = append(v.Unknown, unrendered(applier, err)...)
	if rendered == nil {
		return
	}
	var suspects []suspect
	if may, drifted := rendered.suspect(sub, t, o); drifted {
		suspects = append(suspects, may)
	}
	found, unknown := s.drift(ctx, sub, rendered, suspects)
	v.Unknown = append(v.Unknown, unknown...)
	if applied, ok := rendered.of(t); ok {
		if f, encrypted := undecrypted(sub, []build.Object{applied}); encrypted {
			found = append(found, f)
		}
	}
	for _, f := range found {
		v.Cases = append(v.Cases, single(f))
	}
}

func single(f Finding) Case { return Case{Object: f.Object, Root: f, Chain: []Finding{f}} }

// gone returns the case of an object that does not exist, and a description of
// what could not be read.
func (d Doctor) gone(ctx context.Context, word, namespace, name string) (c Case, found bool, unknown []string) {
	r, err := d.Client.Discovery().Named(ctx, word)
	if err != nil {
		return Case{}, false, []string{unseen(err) + ": resource types"}
	}
	t := controllers.ID{Group: r.Group, Kind: r.Kind, Namespace: namespace, Name: name}
	if r.ClusterScoped {
		t.Namespace = ""
	}
	owners, unknown := d.appliersOf(ctx, controllers.Kinds, namespacesOf(t), t)
	if len(owners) > 0 {
		return d.lost(t, subject{kind: owners[0].kind, object: owners[0].object}), true, nil
	}
	pruned, err := d.pruned(ctx, t)
	if err != nil {
		unknown = append(unknown, unseen(err)+": events")
	}
	return single(pruned), pruned.Code != "", unknown
}

// pruned returns the finding for an object that a controller reports as pruned.
// Its code is "" if no controller does.
func (d Doctor) pruned(ctx context.Context, t controllers.ID) (Finding, error) {
	events := history{client: d.Client}
	last, err := events.pruning(ctx, "", t)
	if apierrors.IsForbidden(err) && t.Namespace != "" {
		var there error
		if last, there = events.pruning(ctx, t.Namespace, t); there == nil {
			err = fmt.Errorf("events in other namespaces: %w", err)
		}
	}
	if last.by.Name == "" {
		return Finding{}, err
	}
	return Finding{
		Object: t, Code: "pruned", Message: fmt.Sprintf("%s pruned it at %s: it is no longer in its source", last.by, last.at.UTC().Format("2006-01-02 15:04:05 MST")),
		Remedies: []string{"add it to the source again, commit and push", "see who removed it, in a clone of the source: git log -S " + hint.Quote(t.Name)},
	}, err
}

// lost returns the case of an object that is in an inventory but does not
// exist: its owner is being deleted, or it was deleted outside Flux.
func (d Doctor) lost(t controllers.ID, sub subject) Case {
	s := d.newDiagnosis()
	owner := sub.id()
	if _, deleting := deletedAt(sub.object); !deleting {
		return single(d.deleted(t, sub))
	}
	root := s.deleting(sub)
	first := Finding{Object: t, Code: "pruned", Message: fmt.Sprintf("it was deleted by %s, which is being deleted and does not recreate it", owner)}
	return Case{Object: t, Root: *root, Chain: []Finding{first, *root}}
}
