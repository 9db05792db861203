package events

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// about sets the subject of the query. A word that is not a Flux kind may be
// any resource type of the cluster.
func (q *query) about(ctx context.Context, ref objref.Ref) error {
	q.subject = &objref.Target{Namespace: ref.NamespaceOr(q.namespace), Name: ref.Name}
	if len(ref.Kinds) == 1 {
		q.subject.Kind = ref.Kinds[0]
		return nil
	}
	ctx, cancel := q.app.WithTimeout(ctx)
	defer cancel()
	r, err := q.client.Discovery().Named(ctx, ref.Word)
	var unknown *kube.UnknownWordError
	if errors.As(err, &unknown) {
		if suggestion := objref.DidYouMean(ref.Word); suggestion != "" {
			return hint.Errorf(suggestion, "%w", err)
		}
	}
	if err != nil {
		return err
	}
	if k, ok := controllers.KindOf(r.Group, r.Kind); ok { // a Flux kind with its group, e.g. kustomizations.kustomize.toolkit.fluxcd.io
		q.subject.Kind = k
		return nil
	}
	q.resource = &r
	q.subject.Kind = controllers.Kind{Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Resource}
	if r.ClusterScoped {
		q.subject.Namespace = ""
	}
	return nil
}

// resourceScope returns the scope of a subject that is not a Flux kind. Events
// of cluster-scoped objects are in namespace default.
func (q *query) resourceScope() eventScope {
	s := eventScope{
		namespace: q.subject.Namespace, kind: schema.GroupKind{Group: q.resource.Group, Kind: q.resource.Kind}, names: []string{q.subject.Name},
	}
	if q.resource.ClusterScoped {
		s.namespace = metav1.NamespaceDefault
	}
	return s
}

// visitResource calls visit with the scope of a subject that is not a Flux
// kind, and reports whether the subject exists.
func (q *query) visitResource(ctx context.Context, visit func(context.Context, []eventScope) error) (bool, error) {
	var looking sync.WaitGroup
	there := false
	looking.Go(func() { there, q.hidden = q.exists(ctx) })
	err := visit(ctx, []eventScope{q.resourceScope()})
	looking.Wait()
	if err == nil && !apierrors.IsForbidden(q.hidden) {
		err = q.hidden
	}
	return there, err
}

// exists reports whether a subject that is not a Flux kind exists.
func (q *query) exists(ctx context.Context) (there bool, err error) {
	if q.subject.Namespace == "" && !q.resource.ClusterScoped {
		err = q.client.Metadata(ctx, *q.resource, kube.Selection{Name: q.subject.Name}, func(controllers.Object) { there = true })
		return there, err
	}
	_, err = q.client.Get(ctx, *q.resource, q.subject.Namespace, q.subject.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// walkUpstream calls visit with the scopes of a Flux subject and then of its upstream
// objects, level by level. It reports whether the subject exists.
func (q *query) walkUpstream(ctx context.Context, visit func(context.Context, []eventScope) error) (bool, error) {
	up := walker{app: q.app, client: q.client}
	above := false
	err := up.walk(ctx, *q.subject, func(ctx context.Context, level []objref.Target) error {
		scopes := scopesOf(level, above)
		if above {
			q.subjects = up.subjects // the first level has been read
		}
		above = true
		return visit(ctx, scopes)
	})
	return up.found, err
}

// concerns reports whether an event of an upstream object is relevant for the
// subject: a Warning, or an event of a revision that the subject has attempted.
// A fresh event may be of a revision that the subject attempts next.
func (q *query) concerns(h event.Event, fresh bool) bool {
	if h.Type == "Warning" {
		return true
	}
	revision := controllers.Annotation(h.Object, h.About.Group+"/revision")
	if revision == "" || fresh {
		return revision != ""
	}
	source, _ := controllers.KindOf(h.About.Group, h.About.Kind)
	for _, o := range q.subjects {
		if q.subject.Kind.Result.String(o) == revision || q.subject.Kind.Tried(o, source, revision) {
			return true
		}
	}
	return false
}

// completeAnyObject completes KIND/NAME for Flux kinds and common workload
// kinds.
func completeAnyObject(a *app.App) cobra.CompletionFunc {
	ofFlux := complete.FluxObjects(a)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		words, directive := ofFlux(cmd, args, prefix)
		if strings.Contains(prefix, "/") {
			return words, directive
		}
		for _, word := range kube.Words() {
			words = append(words, word+"/")
		}
		return complete.Matching(words, nil, prefix), directive
	}
}
