package events

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// watchUpdate is an update from the watch of a scope: the initial list, an event, or
// the final error.
type watchUpdate struct {
	scope  int
	listed bool
	events []event.Event
	gone   string
	ended  error
}

// watch prints the existing events and then streams new ones.
func (q *query) watch(ctx context.Context) error {
	scopes, err := q.scopes(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	reports := make(chan watchUpdate)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range scopes {
		wg.Go(func() { q.follow(ctx, i, scopes[i], reports) })
	}
	w := &eventWatcher{query: q, scopes: scopes, unlisted: map[int]bool{}, open: len(scopes), printed: map[string]string{}}
	for i := range scopes {
		w.unlisted[i] = true
	}
	for w.open > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-reports:
			if err := w.take(ctx, r); err != nil {
				return err
			}
		}
	}
	return clierr.ErrReported
}

// scopes returns the scopes to watch.
func (q *query) scopes(ctx context.Context) ([]eventScope, error) {
	if q.subject == nil {
		return q.everything(), nil
	}
	ctx, cancel := q.app.WithTimeout(ctx)
	defer cancel()
	var all []eventScope
	visit := func(_ context.Context, scopes []eventScope) error {
		all = append(all, scopes...)
		return nil
	}
	if q.resource != nil {
		there, err := q.visitResource(ctx, visit)
		if err == nil && !there {
			q.app.UI.Waiting("%s object '%s' not found: waiting for it to be created", q.subject.Kind.Kind, q.subject.Name)
		}
		return all, err
	}
	there, err := q.walkUpstream(ctx, visit)
	if err == nil && !there {
		q.app.UI.Waiting("%s object '%s' not found: events of its upstream objects are not included", q.subject.Kind.Kind, q.subject.Name)
	}
	return all, err
}

func (q *query) follow(ctx context.Context, scope int, s eventScope, reports chan<- watchUpdate) {
	send := func(r watchUpdate) error {
		r.scope = scope
		select {
		case <-ctx.Done():
			return ctx.Err()
		case reports <- r:
			return nil
		}
	}
	err := q.client.Watch(ctx, q.app.WithTimeout, event.Resource(), s.selection(), func(objects []controllers.Object) error {
		r := watchUpdate{listed: true}
		for _, o := range objects {
			if h := event.Of(o); q.shows(s, h, false) {
				r.events = append(r.events, h)
			}
		}
		return send(r)
	}, func(e kube.Event) error {
		h := event.Of(e.Object)
		switch {
		case e.Deleted: // events expire
			return send(watchUpdate{gone: h.ID()})
		case q.shows(s, h, true):
			return send(watchUpdate{events: []event.Event{h}})
		}
		return nil
	})
	// A cancellation is not reported: the receiver has returned.
	_ = send(watchUpdate{ended: s.explain(err)})
}

// eventWatcher prints the updates of all scopes in order of arrival.
type eventWatcher struct {
	*query
	scopes   []eventScope
	unlisted map[int]bool // scopes whose initial list is pending
	open     int          // scopes that are still watched
	early    []event.Event
	// printed has the last printed state of each event: changes of metadata and
	// repeated lists are not printed again.
	printed map[string]string
	add     func(event.Event) error
}

func (w *eventWatcher) take(ctx context.Context, r watchUpdate) error {
	switch {
	case r.ended != nil:
		if ctx.Err() != nil || !w.onlyUpstream(w.scopes[r.scope], r.ended) {
			return r.ended
		}
		w.app.Report(r.ended)
		w.open--
	case r.gone != "":
		delete(w.printed, r.gone)
		return nil
	case w.add != nil:
		return w.show(r.events)
	default:
		w.early = append(w.early, r.events...)
		if !r.listed {
			return nil
		}
	}
	delete(w.unlisted, r.scope)
	if w.add == nil && len(w.unlisted) == 0 {
		return w.begin()
	}
	return nil
}

// begin prints the initial lists and the events that arrived meanwhile.
func (w *eventWatcher) begin() error {
	var first []event.Event
	for _, h := range w.early {
		if w.isNew(h) {
			first = append(first, h)
		}
	}
	event.Sort(first)
	w.early = nil
	if w.options.printsObjects() {
		records, err := output.NewRecords(w.app.Output(w.options.format), w.options.format, output.NoHeader(w.options.noHeader), app.Templates(w.app))
		if err != nil {
			return err
		}
		w.add = func(h event.Event) error { return records.Print(&unstructured.Unstructured{Object: h.Object}, false) }
		for _, h := range first {
			if err := w.add(h); err != nil {
				return err
			}
		}
		return nil
	}
	stream := output.NewStream(w.app.Out, w.headers(), func() (output.Screen, bool) { return w.app.Screen(w.options.noTrunc) })
	w.add = func(h event.Event) error { return stream.Add(w.row(h)) }
	var rows [][]string
	for _, h := range first {
		rows = append(rows, w.row(h))
	}
	return stream.Begin(rows, !w.options.noHeader)
}

func (w *eventWatcher) show(events []event.Event) error {
	for _, h := range events {
		if !w.isNew(h) {
			continue
		}
		if err := w.add(h); err != nil {
			return err
		}
	}
	return nil
}

// isNew reports whether an event has a state that was not printed yet.
func (w *eventWatcher) isNew(h event.Event) bool {
	id, printed := h.ID(), h.State()
	if w.printed[id] == printed {
		return false
	}
	w.printed[id] = printed
	return true
}
