package main

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// about sets the subject of the query. A word that Flux does not know may be
// any resource type of the cluster.
func (q *eventQuery) about(ctx context.Context, ref objectRef) error {
	q.subject = &target{namespace: ref.in(q.namespace), name: ref.name}
	if len(ref.kinds) == 1 {
		q.subject.kind = ref.kinds[0]
		return nil
	}
	ctx, cancel := q.app.bounded(ctx)
	defer cancel()
	r, err := q.client.Named(ctx, ref.word)
	var unknown *kube.UnknownWordError
	if errors.As(err, &unknown) {
		var suggestion *hintedError
		if errors.As(unknownSubject(ref.word), &suggestion) && strings.HasPrefix(suggestion.hint, "did you mean") {
			return hinted(suggestion.hint, "%w", err)
		}
	}
	if err != nil {
		return err
	}
	if k, ok := controllers.KindOf(r.Group, r.Kind); ok { // as in kustomizations.kustomize.toolkit.fluxcd.io
		q.subject.kind = k
		return nil
	}
	q.resource = &r
	q.subject.kind = controllers.Kind{Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Resource}
	if r.ClusterScoped {
		q.subject.namespace = ""
	}
	return nil
}

// resourceScope is the list of events about a subject that is not of Flux.
// Those about objects without a namespace are kept in namespace default.
func (q *eventQuery) resourceScope() eventScope {
	s := eventScope{
		namespace: q.subject.namespace, kind: schema.GroupKind{Group: q.resource.Group, Kind: q.resource.Kind}, names: []string{q.subject.name},
	}
	if q.resource.ClusterScoped {
		s.namespace = metav1.NamespaceDefault
	}
	return s
}

// visitResource calls visit with the events about a subject that is not of
// Flux, and reports whether there is such an object.
func (q *eventQuery) visitResource(ctx context.Context, visit func(context.Context, []eventScope) error) (bool, error) {
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

// exists reports whether the cluster has a subject that is not of Flux.
func (q *eventQuery) exists(ctx context.Context) (there bool, err error) {
	if q.subject.namespace == "" && !q.resource.ClusterScoped {
		err = q.client.Metadata(ctx, *q.resource, kube.Selection{Name: q.subject.name}, func(controllers.Object) { there = true })
		return there, err
	}
	_, err = q.client.Get(ctx, *q.resource, q.subject.namespace, q.subject.name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// climb calls visit with the events about a subject of Flux and, level by
// level, about what it depends on; it reports whether there is such an object.
func (q *eventQuery) climb(ctx context.Context, visit func(context.Context, []eventScope) error) (bool, error) {
	up := climber{app: q.app, client: q.client}
	above := false
	err := up.climb(ctx, *q.subject, func(ctx context.Context, level []target) error {
		scopes := scopesOf(level, above)
		if above {
			q.subjects = up.feet // read together with the first level
		}
		above = true
		return visit(ctx, scopes)
	})
	return up.found, err
}

// concerns reports whether an event about what the subject depends on concerns
// the subject: a Warning, or what is about a revision that the subject has
// worked on. A fresh event may be about one that it will work on.
func (q *eventQuery) concerns(h happening, fresh bool) bool {
	if h.typ == "Warning" {
		return true
	}
	revision := controllers.Annotation(h.object, h.group+"/revision")
	if revision == "" || fresh {
		return revision != ""
	}
	source, _ := controllers.KindOf(h.group, h.kind)
	for _, o := range q.subjects {
		if q.subject.kind.Result.String(o) == revision || q.subject.kind.Tried(o, source, revision) {
			return true
		}
	}
	return false
}

// completeAnyObject offers KIND/NAME of Flux and of what people mostly ask about.
func (a *app) completeAnyObject() cobra.CompletionFunc {
	ofFlux := a.completeSubject()
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		words, directive := ofFlux(cmd, args, prefix)
		if strings.Contains(prefix, "/") {
			return words, directive
		}
		for _, word := range kube.Words() {
			words = append(words, word+"/")
		}
		return offered(words, nil, prefix), directive
	}
}
