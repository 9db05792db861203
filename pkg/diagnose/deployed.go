package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/inventory"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/tree"
)

// Deployed diagnoses an object that Flux has applied, or that an applied object owns: the object, its applier and the source.
// word is a resource type, as in kubectl. It returns a NotFound error if the object does not exist and the reason is unknown. In
// that case, the result describes what could not be read.
func (d Diagnoser) Deployed(ctx context.Context, word, namespace, name string) (Result, error) {
	r := Result{Checked: 1}
	trace, err := tree.TraceObject(ctx, d.Client, "", word, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		s := d.begin()
		if !s.addGone(ctx, &r, word, namespace, name) {
			return r, err
		}
		return s.conclude(r), nil
	case errors.Is(err, tree.ErrUnmanaged):
		if s := d.begin(); !s.findApplier(ctx, &r, trace) {
			if k, err := kube.Extension(ctx, d.Client, word); err == nil {
				return d.extension(ctx, k, trace)
			}
			return s.conclude(r), nil
		}
	case err != nil:
		return Result{}, err
	}
	s, err := d.inspectTrace(ctx, trace)
	if err != nil {
		return Result{}, err
	}
	s.diagnoseApplied(ctx, &r, trace, word)
	return s.conclude(r), nil
}

// extension diagnoses an object of a project that extends Flux, which Flux has not applied: its own status and its source.
func (d Diagnoser) extension(ctx context.Context, k controllers.Kind, trace *tree.Trace) (Result, error) {
	sources := slices.DeleteFunc(k.SourceOf(trace.Applied), func(t controllers.ID) bool {
		_, known := t.Flux()
		return !known
	})
	s, err := d.inspect(ctx, sources, nil, apierrors.IsForbidden)
	if err != nil {
		return Result{}, err
	}
	r := Result{Checked: 1}
	for _, t := range sources {
		s.diagnose(ctx, &r, t)
	}
	if f, ok := s.installation.extension(rules.NewSubject(k, trace.Applied, s.config.Home)); ok {
		r.Causes = append(r.Causes, single(f))
	}
	return s.conclude(r), nil
}

// extension returns the finding for an object of a project that extends Flux, and false for a ready object. The rules for the messages
// of Flux controllers do not apply to it.
func (in *installation) extension(s rules.Subject) (rules.Finding, bool) {
	if f, ok := in.deletion(s.ID(), s.Object); ok {
		return f, true
	}
	switch {
	case s.Kind.Suspension.Is(s.Object):
		return suspended(s), true
	case s.Kind.IsReady(s.Object):
		return rules.Finding{}, false
	}
	f := rules.Finding{Object: s.ID(), Code: "not-ready", Message: "it is not ready: " + rules.ConditionText(s.Ready), Since: rules.StateSince(s.Object)}
	if s.Ready.Status != "False" || s.Ready.Reason == "" {
		f, _ = s.Status() // not reconciled yet, or being reconciled
	}
	f.Fixes = []string{describe(s.ID())}
	if !s.Kind.Has(controllers.Reconcile) {
		f.Retry = ""
	}
	return f, true
}

// describe returns the remedy for a custom resource that is not ready.
func describe(t controllers.ID) string {
	return "check its events and conditions: " + rules.Kubectl(t, "describe")
}

// findApplier searches the inventories for an object without owner labels. If an inventory contains the object, its owner becomes
// the applier of the trace. Otherwise Flux does not manage the object.
func (s *diagnosis) findApplier(ctx context.Context, r *Result, trace *tree.Trace) (found bool) {
	owners, unknown := s.cluster.Appliers(ctx, controllers.Known, nil, controllers.IDOf(trace.Applied))
	if len(owners) > 0 {
		trace.Applier.Object = owners[0].ID()
		return true
	}
	f := rules.Finding{
		Object: trace.Object, Code: "unmanaged", Message: "Flux does not manage it: it has no Flux labels and is not in any inventory",
		Fixes: []string{"add it to a source that a Kustomization applies"},
	}
	if len(unknown) > 0 {
		f.Message = "it has no Flux labels"
	}
	r.Causes, r.Unknown = []Cause{single(f)}, unknown
	return false
}

// diagnoseApplied adds the causes of an applied object.
func (s *diagnosis) diagnoseApplied(ctx context.Context, r *Result, trace *tree.Trace, word string) {
	applier, object := trace.Applier.Object, trace.Object
	problems, unknown := rollout.Problems(ctx, s.cluster, []controllers.ID{object})
	r.Unknown = append(r.Unknown, unknown...)
	extension, err := kube.Extension(ctx, s.cluster.Client, word)
	if p, found := rollout.Object(ctx, s.cluster, trace.Applied); found && err != nil {
		problems = append(problems, p)
	}
	created := rules.Moment(controllers.Path{"metadata.creationTimestamp"}.String(trace.Applied))
	for _, p := range problems {
		f := workloadFinding(object, p)
		if len(f.Fixes) == 0 && !controllers.IsBuiltInGroup(object.Group) {
			f.Fixes = []string{describe(object)}
		}
		if !rollout.IsWorkload(object) { // a new object waits for its controller
			fresh := f
			if fresh.Code, fresh.Since = "progressing", created; fresh.IsProgress(s.config.Now) {
				f = fresh
			}
		}
		r.Causes = append(r.Causes, single(f))
	}
	for _, e := range inventory.Exclusions(trace.Applied) {
		r.Causes = append(r.Causes, single(excluded(trace, word, e)))
	}
	if f, ok := s.installation.deletion(controllers.IDOf(trace.Applied), trace.Applied); ok {
		f.Details = append(f.Details, "it was applied by "+applier.String())
		r.Causes = append(r.Causes, single(f))
		return
	}
	if apierrors.IsNotFound(trace.Applier.Err) {
		r.Causes = append(r.Causes, single(rules.Finding{
			Object: object, Code: "orphaned", Message: fmt.Sprintf("it was applied by %s, which no longer exists", applier),
			Fixes: []string{fmt.Sprintf("recreate %s, or delete the object if it is no longer needed", applier)},
		}))
		return
	}
	if f, ok := s.installation.extension(rules.NewSubject(extension, trace.Applied, s.config.Home)); ok && err == nil {
		r.Causes = append(r.Causes, single(f))
	}
	own := len(r.Causes)
	if s.diagnose(ctx, r, applier) && s.snapshot.Objects[applier] != nil {
		checked := s.inventories().CheckOne(ctx, s.evaluation.subject(applier), trace.Applied)
		r.Unknown = append(r.Unknown, checked.Unknown...)
		for _, p := range checked.Problems {
			r.Causes = append(r.Causes, single(p.Finding))
		}
	}
	kept := slices.DeleteFunc(r.Causes[own:], func(c Cause) bool { return isConsequence(c, r.Causes[:own]) })
	r.Causes = r.Causes[:own]
	for _, c := range kept {
		if c.Object = object; c.Chain[0].Object != object { // the chain starts at the object
			c.Chain = append([]rules.Finding{{Object: object, Code: "applied", Message: "it is applied by " + applier.String()}}, c.Chain...)
		}
		r.Causes = append(r.Causes, c)
	}
}

// isConsequence reports whether the cause of an applier follows from a workload's cause: both wait for the same pods.
func isConsequence(c Cause, own []Cause) bool {
	return slices.ContainsFunc(own, func(o Cause) bool {
		return o.Root().Code == c.Root().Code && c.Root().Object != o.Root().Object && strings.HasSuffix(c.Root().Message, o.Root().Message)
	})
}

// excluded returns the finding for a label or annotation that excludes an object from reconciliation.
func excluded(trace *tree.Trace, word string, e inventory.Exclusion) rules.Finding {
	at, command := "annotation", "annotate"
	if controllers.Annotation(trace.Applied, e.Key) == "" {
		at, command = "label", "label"
	}
	kubectl := "kubectl"
	if trace.Object.Namespace != "" {
		kubectl += " -n " + hint.Quote(trace.Object.Namespace)
	}
	return rules.Finding{
		Object: trace.Object, Code: "disabled", Message: fmt.Sprintf("it has the %s %s: %s: %s", at, e.Key, e.Value, e.Effect),
		Fixes: []string{fmt.Sprintf("remove the %s in the source, or on the cluster: %s %s %s %s-", at, kubectl, command, rules.KubectlName(word, trace.Object.Name), e.Key)},
	}
}

// addGone adds the reason why an object does not exist, and reports whether it found one.
func (s *diagnosis) addGone(ctx context.Context, r *Result, word, namespace, name string) bool {
	resource, err := s.cluster.Client.Discovery().Named(ctx, word)
	if err != nil {
		r.Unknown = []string{observe.Unread("resource types", err)}
		return false
	}
	t := controllers.ID{Group: resource.Group, Kind: resource.Kind, Namespace: namespace, Name: name}
	if resource.ClusterScoped {
		t.Namespace = ""
	}
	owners, unknown := s.cluster.Appliers(ctx, controllers.Known, nil, t)
	if len(owners) > 0 {
		r.Causes = append(r.Causes, s.lost(ctx, r, t, owners[0]))
		return true
	}
	pruned, err := pruned(ctx, s.cluster, t)
	r.Unknown = unknown
	if err != nil {
		r.Unknown = append(r.Unknown, observe.Unread("events", err))
	}
	if pruned.Code != "" {
		r.Causes = append(r.Causes, single(pruned))
	}
	return pruned.Code != ""
}

// lost returns the cause of an object that is in an inventory but does not exist: its owner is being deleted, or it was deleted
// outside Flux.
func (s *diagnosis) lost(ctx context.Context, r *Result, t controllers.ID, owner observe.Applier) Cause {
	deletion, deleting := s.installation.deletion(owner.ID(), owner.Object)
	if !deleting {
		f, unread := s.inventories().Missing(ctx, t, rules.NewSubject(owner.Kind, owner.Object, s.config.Home))
		r.Unknown = append(r.Unknown, unread...)
		if f.Object == t {
			return single(f)
		}
		return causeOf(t, rules.Finding{Object: t, Code: "missing", Message: "it does not exist"}, f)
	}
	first := rules.Finding{Object: t, Code: "pruned", Message: fmt.Sprintf("it was deleted by %s, which is being deleted itself and will not recreate it", owner.ID())}
	return causeOf(t, first, deletion)
}

// pruned returns the finding for an object that a controller reports as pruned. Its code is "" if there is no such report.
func pruned(ctx context.Context, c *observe.Cluster, t controllers.ID) (rules.Finding, error) {
	last, err := c.Pruning(ctx, "", t)
	if apierrors.IsForbidden(err) && t.Namespace != "" {
		var there error
		if last, there = c.Pruning(ctx, t.Namespace, t); there == nil {
			err = fmt.Errorf("events in other namespaces: %w", err)
		}
	}
	if last.About.Name == "" {
		return rules.Finding{}, err
	}
	return rules.Finding{
		Object: t, Code: "pruned", Message: fmt.Sprintf("%s pruned it at %s: it is no longer in its source", last.About, last.At.UTC().Format("2006-01-02 15:04:05 MST")),
		Fixes: []string{"add it to the source again, commit and push", "find the commit that removed it, in a clone of the source: git log -S " + hint.Quote(t.Name)},
	}, err
}
