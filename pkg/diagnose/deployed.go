package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// leftMark is a label or an annotation and what it does.
type leftMark struct{ key, value, effect string }

// leaveAlone are the marks by which people keep Flux away from an object
// (kustomize-controller, "Controlling the apply behavior of resources").
var leaveAlone = []leftMark{
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled", "nothing is applied to it"},
	{"kustomize.toolkit.fluxcd.io/ssa", "Ignore", "nothing is applied to it"},
	{"kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", "it is made once and never changed"},
	{"helm.toolkit.fluxcd.io/driftDetection", "disabled", "changes that others make to it are not corrected"},
}

// Deployed looks at an object that Flux has applied, or that something applied
// by Flux owns: at itself, at what has applied it, and at where that comes from.
// The word is one of kubectl's for a resource type. That the object is not
// there, and that nobody knows why, is an error of the API (IsNotFound).
func (d Doctor) Deployed(ctx context.Context, word, namespace, name string) (Verdict, error) {
	v := Verdict{Looked: 1}
	trace, err := tree.Up(ctx, d.Client.Config, "", word, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		c, ok := d.gone(ctx, word, namespace, name)
		if !ok {
			return Verdict{}, err
		}
		v.Cases = append(v.Cases, c)
		return v, nil
	case errors.Is(err, tree.ErrUnmanaged):
		v.Cases = append(v.Cases, single(Finding{
			Object: controllers.Target{Kind: word, Namespace: namespace, Name: name}, Code: "unmanaged", Message: "Flux does not manage it",
			Remedies: []string{"add it to a source that a Kustomization applies"},
		}))
		return v, nil
	case err != nil:
		return Verdict{}, err
	}
	applier := target(trace.Applier.Object)
	s, err := d.inspect(ctx, []controllers.Target{applier}, nil, apierrors.IsForbidden)
	if err != nil {
		return Verdict{}, err
	}
	object := target(trace.Object)
	s.workload(ctx, &v, object)
	s.marked(&v, trace, word)
	if f, ok := blockedDeletion(targetOfLive(trace.Applied), trace.Applied); ok {
		f.Details = append(f.Details, "it was applied by "+trace.Applier.Object.String())
		v.Cases = append(v.Cases, single(f))
		v.separate(0, s.Now)
		return v, nil
	}
	if apierrors.IsNotFound(trace.Applier.Err) {
		v.Cases = append(v.Cases, single(Finding{
			Object: object, Code: "orphaned", Message: fmt.Sprintf("it was applied by %s, which does not exist any more", trace.Applier.Object),
			Remedies: []string{"delete it, or bring back what applied it"},
		}))
		return v, nil
	}
	own := len(v.Cases)
	if s.consult(ctx, &v, applier) {
		s.verifyOne(ctx, &v, applier, trace.Applied)
	}
	v.Cases = append(v.Cases[:own], slices.DeleteFunc(v.Cases[own:], func(c Case) bool { return consequence(c, v.Cases[:own]) })...)
	v.RootCauses, v.Unknown = len(v.Cases), append(s.unknown(v.Cases), v.Unknown...)
	for i := range v.Cases[own:] {
		c := &v.Cases[own+i]
		c.Object = object
		if c.Chain[0].Object != object { // the way from the object on
			c.Chain = append([]Finding{{Object: object, Code: "applied", Message: "it is applied by " + trace.Applier.Object.String()}}, c.Chain...)
		}
	}
	return v, nil
}

// consequence reports whether a case of an applier is only that it waits for the
// pods of a workload that has a case itself.
func consequence(c Case, own []Case) bool {
	return slices.ContainsFunc(own, func(o Case) bool {
		return o.Root.Code == c.Root.Code && c.Root.Object != o.Root.Object && strings.HasSuffix(c.Root.Message, o.Root.Message)
	})
}

// workload adds the cases of pods that are not ready.
func (s *snapshot) workload(ctx context.Context, v *Verdict, object controllers.Target) {
	for _, trouble := range Workloads(ctx, s.Client, []controllers.Target{object}) {
		v.Cases = append(v.Cases, single(trouble.finding(object)))
	}
}

// marked adds the cases of marks that keep Flux from an object.
func (s *snapshot) marked(v *Verdict, trace *tree.Trace, word string) {
	object := target(trace.Object)
	for _, l := range leaveAlone {
		if !controllers.Marked(trace.Applied, l.key, l.value) {
			continue
		}
		at, command := "annotation", "annotate"
		if controllers.Annotation(trace.Applied, l.key) == "" {
			at, command = "label", "label"
		}
		v.Cases = append(v.Cases, single(Finding{
			Object: object, Code: "disabled", Message: fmt.Sprintf("the %s %s: %s is on it: %s", at, l.key, l.value, l.effect),
			Remedies: []string{fmt.Sprintf("remove the %s in the source, or on the cluster: kubectl%s %s %s %s %s-", at, inNamespace(object.Namespace), command, word, object.Name, l.key)},
		}))
	}
}

// targetOfLive names an object that was read from the cluster.
func targetOfLive(o controllers.Object) controllers.Target {
	field := func(name string) string { return controllers.Path{name}.String(o) }
	return controllers.Target{APIVersion: field("apiVersion"), Kind: field("kind"), Namespace: controllers.Namespace(o), Name: controllers.Name(o)}
}

// verifyOne looks at one object that a healthy applier has applied, as verify
// does at all of them.
func (s *snapshot) verifyOne(ctx context.Context, v *Verdict, applier controllers.Target, o controllers.Object) {
	t := targetOfLive(o)
	sub := newSubject(s.kindOf(applier), s.objects[applier])
	if sub.object == nil || sub.kind.Suspension.Is(sub.object) || leftAlone(o) {
		return
	}
	one := &inventory{subject: sub, targets: []controllers.Target{t}, live: map[controllers.Target]controllers.Object{t: o}}
	for _, c := range one.contested(ctx, s) {
		v.Cases = append(v.Cases, single(c.Root))
	}
	rendered, err := s.desiredOf(ctx, sub)
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
		if f, encrypted := s.undecrypted(sub, []build.Object{applied}); encrypted {
			found = append(found, f)
		}
	}
	for _, f := range found {
		v.Cases = append(v.Cases, single(f))
	}
}

func single(f Finding) Case { return Case{Object: f.Object, Root: f, Chain: []Finding{f}} }

// gone finds out why an object that was asked about is not there.
func (d Doctor) gone(ctx context.Context, word, namespace, name string) (Case, bool) {
	r, err := d.Client.Named(ctx, word)
	if err != nil {
		return Case{}, false
	}
	t := controllers.Target{Kind: r.Kind, Namespace: namespace, Name: name}
	for _, owner := range d.appliersOf(ctx, controllers.Kinds, t) {
		return d.lost(t, subject{kind: owner.kind, object: owner.object}), true
	}
	var pruned Finding
	_, err = d.Client.List(ctx, resource(corev1.SchemeGroupVersion, "Event"), kube.Selection{}, func(o controllers.Object) error {
		e := eventOf(o)
		for line := range strings.Lines(controllers.Path{"message"}.String(o)) {
			if strings.TrimSpace(line) != r.Kind+"/"+namespace+"/"+name+" deleted" {
				continue
			}
			by := controllers.Path{"involvedObject.kind"}.String(o) + "/" + controllers.Path{"involvedObject.namespace"}.String(o) + "/" + controllers.Path{"involvedObject.name"}.String(o)
			pruned = Finding{
				Object: t, Code: "pruned", Message: fmt.Sprintf("%s has pruned it at %s: it is no longer in its source", by, e.At.UTC().Format("2006-01-02 15:04:05 MST")),
				Remedies: []string{"add it to the source again, commit and push", "see who removed it, in a clone of the source: git log -S " + argument(t.Name)},
			}
		}
		return nil
	})
	return single(pruned), err == nil && pruned.Code != ""
}

// lost is the case of an object that is in an inventory and does not exist: its
// owner is being deleted and takes it along, or something else has deleted it.
func (d Doctor) lost(t controllers.Target, sub subject) Case {
	s := &snapshot{Doctor: d}
	owner := targetOf(sub.kind, sub.object)
	if _, deleting := deletedAt(sub.object); !deleting {
		return single(s.deleted(t, sub))
	}
	root := s.deleting(sub)
	first := Finding{Object: key(t), Code: "pruned", Message: fmt.Sprintf("it was deleted by %s, which is being deleted itself: nothing recreates it", owner)}
	return Case{Object: key(t), Root: *root, Chain: []Finding{first, *root}}
}
