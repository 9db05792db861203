package get

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
)

// update is an update from the watch of one kind: the first list, then a change,
// and finally the error that ended it.
type update struct {
	kind   int // index in the kinds of the query
	listed []controllers.Object
	event  *kube.Event
	ended  error
}

// redrawPause is the time for which changes are collected before a table is redrawn.
const redrawPause = 50 * time.Millisecond

// watch lists objects and prints changes until it is interrupted. --timeout limits
// the first lists.
func watch(ctx context.Context, a *app.App, q *query) error {
	return clierr.UntilInterrupted(ctx, watchAll(ctx, a, q))
}

func watchAll(ctx context.Context, a *app.App, q *query) error {
	ctx, cancel := context.WithCancel(ctx)
	reports := make(chan update)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range q.kinds {
		wg.Go(func() { q.follow(ctx, a.WithTimeout, i, reports) })
	}
	w := &watcher{App: a, query: q, shown: map[string]string{}, open: len(q.kinds), unlisted: map[int]bool{}}
	for i, k := range q.kinds {
		w.listings = append(w.listings, listing{kind: k})
		w.unlisted[i] = true
	}
	resized, stop := ui.Resized()
	defer stop()
	for w.open > 0 {
		select {
		case <-ctx.Done():
			return w.end(ctx.Err())
		case r := <-reports:
			if err := w.take(ctx, r); err != nil {
				return w.end(err)
			}
		case <-w.redraw:
			w.redraw = nil
			if err := w.sink.draw(false); err != nil {
				return err
			}
		case <-resized:
			if w.sink != nil {
				if err := w.sink.draw(true); err != nil {
					return err
				}
			}
		}
	}
	return w.end(clierr.ErrReported)
}

// end prints the last changes.
func (w *watcher) end(err error) error {
	if w.redraw != nil {
		err = errors.Join(err, w.sink.draw(false))
	}
	return err
}

// follow sends the updates of one kind until ctx ends or the server rejects the
// watch permanently.
func (q *query) follow(ctx context.Context, first kube.Bound, kind int, reports chan<- update) {
	send := func(r update) error {
		r.kind = kind
		select {
		case <-ctx.Done():
			return ctx.Err()
		case reports <- r:
			return nil
		}
	}
	err := q.client.WithServedVersion(ctx, q.kinds[kind], func(r kube.Resource) error {
		s := q.watched(q.kinds[kind])
		s.Without = q.unshown(q.kinds[kind])
		return q.client.Watch(ctx, first, r, s,
			func(objects []controllers.Object) error { return send(update{listed: objects}) },
			func(e kube.Event) error {
				e = q.leaves(ctx, r, e)
				return send(update{event: &e})
			})
	})
	// The end of ctx is not reported: the receiver has returned.
	_ = send(update{ended: err})
}

// leaves distinguishes an object whose labels no longer match from a deleted one:
// the server sends both as deleted.
func (q *query) leaves(ctx context.Context, r kube.Resource, e kube.Event) kube.Event {
	if !e.Deleted || q.options.labels == "" {
		return e
	}
	o, err := q.client.Get(ctx, r, controllers.Namespace(e.Object), controllers.Name(e.Object))
	if err != nil {
		return e
	}
	return kube.Event{Object: o}
}

// watcher prints the updates of all kinds, one after another.
type watcher struct {
	*app.App
	query    *query
	listings []listing
	open     int          // kinds that are still watched
	unlisted map[int]bool // kinds whose first list is pending
	early    []update
	sink     sink
	// redraw fires when the sink has to be drawn.
	redraw <-chan time.Time
	// shown has the last printed version of each object.
	shown map[string]string
}

func (w *watcher) take(ctx context.Context, r update) error {
	switch {
	case r.event != nil && w.sink == nil:
		w.early = append(w.early, r)
		return nil
	case r.event != nil:
		return w.change(r)
	case r.ended != nil:
		w.open--
		if err := w.lost(ctx, r.ended); err != nil {
			return err
		}
		w.listings[r.kind].err = r.ended
		if w.sink != nil {
			w.reportUnwatched(r.ended)
		}
	default:
		w.collect(r)
	}
	delete(w.unlisted, r.kind)
	if w.sink == nil && len(w.unlisted) == 0 {
		return w.begin()
	}
	return nil
}

// lost returns the error that ends the watch of all kinds, nil if the other kinds
// are still watched.
func (w *watcher) lost(ctx context.Context, err error) error {
	if !w.query.several || ctx.Err() != nil || clierr.Unreachable(err) {
		return err
	}
	return nil
}

// reportUnwatched reports that a kind is not watched.
func (w *watcher) reportUnwatched(err error) {
	if !w.query.mayBeAbsent(err) {
		w.beside(func() { w.Report(err) })
	}
}

// beside prints text between the entries.
func (w *watcher) beside(write func()) {
	if w.sink == nil {
		write()
		return
	}
	w.sink.beside(write)
	w.later()
}

// later schedules a redraw, together with further changes.
func (w *watcher) later() {
	if w.redraw == nil {
		w.redraw = time.After(redrawPause)
	}
}

// reportAllUnwatched reports the kinds that are not watched, in their order. It returns an
// error if the cluster serves none of the kinds.
func (w *watcher) reportAllUnwatched() error {
	missing := 0
	for _, l := range w.listings {
		if l.err == nil {
			continue
		}
		w.reportUnwatched(l.err)
		var absent *kube.MissingKindError
		if errors.As(l.err, &absent) {
			missing++
		}
	}
	if missing == len(w.listings) && w.query.every {
		return kinds.NotServed(w.query.kinds)
	}
	return nil
}

func (w *watcher) collect(r update) {
	l := &w.listings[r.kind]
	shown := columnsOf(w.query, l.kind)
	for _, o := range r.listed {
		_ = w.query.take(l, shown, o) // storing an entry does not fail
		if w.query.wants(l.kind, o) && w.query.keeps(l.kind, o) {
			w.shown[objectKey(l.kind, o)] = versionOf(o)
		}
	}
}

// begin prints the first lists, with the changes since then.
func (w *watcher) begin() error {
	if err := w.reportAllUnwatched(); err != nil {
		return err
	}
	if w.open == 0 {
		return nil
	}
	var err error
	if w.sink, err = newSink(w.App, w.query); err != nil {
		return err
	}
	if err := w.sink.begin(w.query.merge(w.listings)); err != nil {
		return err
	}
	for _, l := range w.listings {
		for _, t := range w.query.missing(l) {
			w.beside(func() {
				w.UI.Waiting("%s object '%s' is not in %s yet", l.kind.Kind, t.Name, objref.InNamespace(t.Namespace))
			})
		}
	}
	for _, r := range w.early {
		if err := w.change(r); err != nil {
			return err
		}
	}
	w.early = nil
	return nil
}

// change prints a change of an object that was printed before or that matches the
// query. An object that no longer matches is printed a last time.
func (w *watcher) change(r update) error {
	k, o := w.query.kinds[r.kind], r.event.Object
	if !w.query.wants(k, o) {
		return nil
	}
	id, version := objectKey(k, o), versionOf(o)
	before, shown := w.shown[id]
	keeps := !r.event.Deleted && w.query.keeps(k, o)
	if !shown && !keeps || !r.event.Deleted && before == version {
		return nil
	}
	if keeps {
		w.shown[id] = version
	} else {
		delete(w.shown, id)
	}
	if r.event.Deleted && w.query.printsObjects() {
		o = w.markDeleted(o)
	}
	w.later()
	return w.sink.add(w.query.entry(k, columnsOf(w.query, k), o), keeps, r.event.Deleted)
}

// markDeleted sets the deletion timestamp of a deleted object. The server sets it
// only for objects with finalizers.
func (w *watcher) markDeleted(o controllers.Object) controllers.Object {
	u := (&unstructured.Unstructured{Object: o}).DeepCopy()
	if u.GetDeletionTimestamp() == nil {
		at := w.Now().UTC().Format(time.RFC3339)
		if err := unstructured.SetNestedField(u.Object, at, "metadata", "deletionTimestamp"); err != nil {
			return o
		}
	}
	return u.Object
}

func objectKey(k controllers.Kind, o controllers.Object) string {
	return k.Kind + "/" + controllers.Namespace(o) + "/" + controllers.Name(o)
}

func versionOf(o controllers.Object) string {
	return controllers.Path{"metadata.resourceVersion"}.String(o)
}
