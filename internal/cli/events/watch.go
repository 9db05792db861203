package events

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/event"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// heard is what the watch of one scope has to say: the events that there are,
// then one at a time, at last why it ended.
type heard struct {
	scope  int
	listed bool
	events []event.Event
	gone   string
	ended  error
}

// watch shows the events that there are and then every one that comes.
func (q *query) watch(ctx context.Context) error {
	scopes, err := q.scopes(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	reports := make(chan heard)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range scopes {
		wg.Go(func() { q.follow(ctx, i, scopes[i], reports) })
	}
	w := &eventWatcher{query: q, scopes: scopes, unlisted: map[int]bool{}, open: len(scopes), said: map[string]string{}}
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

// scopes are the lists that have the events of what is to be watched.
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
			q.app.UI.Waiting("%s object '%s' is not there yet", q.subject.Kind.Kind, q.subject.Name)
		}
		return all, err
	}
	there, err := q.climb(ctx, visit)
	if err == nil && !there {
		q.app.UI.Waiting("%s object '%s' is not there yet: what it depends on is not shown", q.subject.Kind.Kind, q.subject.Name)
	}
	return all, err
}

func (q *query) follow(ctx context.Context, scope int, s eventScope, reports chan<- heard) {
	send := func(r heard) error {
		r.scope = scope
		select {
		case <-ctx.Done():
			return ctx.Err()
		case reports <- r:
			return nil
		}
	}
	err := q.client.Watch(ctx, q.app.WithTimeout, event.Resource(), s.selection(), func(objects []controllers.Object) error {
		r := heard{listed: true}
		for _, o := range objects {
			if h := event.Of(o); q.shows(s, h, false) {
				r.events = append(r.events, h)
			}
		}
		return send(r)
	}, func(e kube.Event) error {
		h := event.Of(e.Object)
		switch {
		case e.Deleted: // the server forgets events in time, which is no news
			return send(heard{gone: h.ID()})
		case q.shows(s, h, true):
			return send(heard{events: []event.Event{h}})
		}
		return nil
	})
	// The end of ctx is not reported: nobody listens any more.
	_ = send(heard{ended: s.explain(err)})
}

// eventWatcher shows what is heard of all scopes, one after another.
type eventWatcher struct {
	*query
	scopes   []eventScope
	unlisted map[int]bool // scopes whose first list is still to come
	open     int          // scopes that are still followed
	early    []event.Event
	// said has what was shown of an event last: a change of nothing but its
	// metadata, or what a second list repeats, is no news.
	said map[string]string
	add  func(event.Event) error
}

func (w *eventWatcher) take(ctx context.Context, r heard) error {
	switch {
	case r.ended != nil:
		if ctx.Err() != nil || !w.mayLack(w.scopes[r.scope], r.ended) {
			return r.ended
		}
		w.app.Report(r.ended)
		w.open--
	case r.gone != "":
		delete(w.said, r.gone)
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

// begin shows what there was, and what has come while other lists were read.
func (w *eventWatcher) begin() error {
	var first []event.Event
	for _, h := range w.early {
		if w.news(h) {
			first = append(first, h)
		}
	}
	event.Sort(first)
	w.early = nil
	if w.options.printsObjects() {
		records, err := output.NewRecords(w.app.Answer(w.options.format), w.options.format, output.NoHeader(w.options.noHeader))
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
		if !w.news(h) {
			continue
		}
		if err := w.add(h); err != nil {
			return err
		}
	}
	return nil
}

// news tells whether an event says something that has not been shown.
func (w *eventWatcher) news(h event.Event) bool {
	id, said := h.ID(), h.State()
	if w.said[id] == said {
		return false
	}
	w.said[id] = said
	return true
}
