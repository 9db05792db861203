package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// leaveAlone are the marks by which people keep Flux away from an object
// (kustomize-controller, "Controlling the apply behavior of resources").
var leaveAlone = []struct{ key, value, effect string }{
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
	for _, trouble := range Workloads(ctx, d.Client, []controllers.Target{object}) {
		v.Cases = append(v.Cases, single(Finding{Object: object, Code: "health", Message: trouble.Message, Details: trouble.Details()}))
	}
	for _, l := range leaveAlone {
		if controllers.Marked(trace.Applied, l.key, l.value) {
			at, command := "annotation", "annotate"
			if controllers.Annotation(trace.Applied, l.key) == "" {
				at, command = "label", "label"
			}
			v.Cases = append(v.Cases, single(Finding{
				Object: object, Code: "disabled", Message: fmt.Sprintf("the %s %s: %s is on it: %s", at, l.key, l.value, l.effect),
				Remedies: []string{fmt.Sprintf("take the %s away in the source, or kubectl -n %s %s %s %s %s-", at, namespace, command, word, name, l.key)},
			}))
		}
	}
	if apierrors.IsNotFound(trace.Applier.Err) {
		v.Cases = append(v.Cases, single(Finding{
			Object: object, Code: "orphaned", Message: fmt.Sprintf("it was applied by %s, which does not exist any more", trace.Applier.Object),
			Remedies: []string{"delete it, or bring back what applied it"},
		}))
		return v, nil
	}
	own := len(v.Cases)
	s.consult(ctx, &v, applier)
	v.RootCauses, v.Unknown = len(v.Cases), append(s.unknown(v.Cases), v.Unknown...)
	for i := range v.Cases[own:] { // the way from the object on
		c := &v.Cases[own+i]
		c.Object = object
		c.Chain = append([]Finding{{Object: object, Code: "applied", Message: "it is applied by " + trace.Applier.Object.String()}}, c.Chain...)
	}
	return v, nil
}

func single(f Finding) Case { return Case{Object: f.Object, Root: f, Chain: []Finding{f}} }

// gone finds out why an object that was asked about is not there.
func (d Doctor) gone(ctx context.Context, word, namespace, name string) (Case, bool) {
	r, err := d.Client.Named(ctx, word)
	if err != nil {
		return Case{}, false
	}
	t := controllers.Target{Kind: r.Kind, Namespace: namespace, Name: name}
	for _, owner := range d.appliersOf(ctx, t) {
		sub := subject{kind: owner.kind, object: owner.object}
		return single(Finding{
			Object: t, Code: "deleted", Message: fmt.Sprintf("it is gone, although %s has applied it: something else has deleted it", targetOf(owner.kind, owner.object)),
			Remedies: []string{"the next reconciliation brings it back: " + sub.command("reconcile")},
		}), true
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
				Remedies: []string{"bring it back in the source, and push; git log shows who took it out"},
			}
		}
		return nil
	})
	return single(pruned), err == nil && pruned.Code != ""
}
