package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// watchedKinds lists the kinds that the cases change. Kinds whose CRD a case creates are
// not watched; their objects are read at the end.
var watchedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}, {Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	{Group: "again.example.com", Version: "v1", Kind: "Gizmo"},
}

var gadgets = schema.GroupVersionKind{Group: "diff.example.com", Version: "v1", Kind: "Gadget"}

// changeWatch records all watch events of some kinds.
type changeWatch struct {
	f      *fixture
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	errs   []error
	start  map[string]controllers.Object
	events map[string][]kube.Event
	news   chan struct{}
}

func watchChanges(f *fixture) *changeWatch {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context()) // the watch spans many steps
	w := &changeWatch{f: f, cancel: cancel, start: map[string]controllers.Object{}, events: map[string][]kube.Event{}, news: make(chan struct{}, 1)}
	f.t.Cleanup(cancel)
	for _, gvk := range watchedKinds {
		r := kube.ResourceFor(gvk)
		var there []types.NamespacedName
		version, err := f.cluster.Client.List(ctx, r, kube.Selection{}, func(o controllers.Object) error {
			w.start[named(o)] = o
			there = append(there, types.NamespacedName{Namespace: controllers.Namespace(o), Name: controllers.Name(o)})
			return nil
		})
		if apierrors.IsNotFound(err) {
			continue // a kind of other cases
		}
		if err != nil {
			f.t.Fatal(err)
		}
		w.group.Go(func() {
			err := f.cluster.Client.FollowFrom(ctx, r, kube.Selection{}, version, there, w.see)
			if err != nil && !errors.Is(err, context.Canceled) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.errs = append(w.errs, err)
			}
		})
	}
	return w
}

func (w *changeWatch) see(e kube.Event) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[named(e.Object)] = append(w.events[named(e.Object)], e)
	select {
	case w.news <- struct{}{}:
	default:
	}
	return false, nil
}

// end waits until the watch has received the current state.
func (w *changeWatch) end() clusterChanges {
	w.f.t.Helper()
	now := map[string]controllers.Object{}
	for _, gvk := range append([]schema.GroupVersionKind{gadgets}, watchedKinds...) {
		_, err := w.f.cluster.Client.List(w.f.t.Context(), kube.ResourceFor(gvk), kube.Selection{}, func(o controllers.Object) error {
			now[named(o)] = o
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			w.f.t.Fatal(err)
		}
	}
	late := deadline(w.f.t)
	for missing := w.missing(now); missing != ""; missing = w.missing(now) {
		select {
		case <-w.news:
		case <-late:
			w.f.t.Fatalf("the watch did not show the current state of %s", missing)
		}
	}
	w.cancel()
	w.group.Wait()
	for _, err := range w.errs {
		w.f.t.Error(err)
	}
	return clusterChanges{w.start, w.events, now}
}

// missing returns an object whose current version, or whose deletion, the watch has not received, or "".
func (w *changeWatch) missing(now map[string]controllers.Object) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, o := range now {
		if text(o, "kind") == gadgets.Kind || text(w.start[name], "metadata.resourceVersion") == text(o, "metadata.resourceVersion") {
			continue
		}
		seen := false
		for _, e := range w.events[name] {
			seen = seen || text(e.Object, "metadata.resourceVersion") == text(o, "metadata.resourceVersion")
		}
		if !seen {
			return name
		}
	}
	for name := range w.start {
		if _, there := now[name]; there {
			continue
		}
		events := w.events[name]
		if len(events) == 0 || !events[len(events)-1].Deleted {
			return name
		}
	}
	return ""
}

// clusterChanges contains all watch events.
type clusterChanges struct {
	start  map[string]controllers.Object
	events map[string][]kube.Event
	last   map[string]controllers.Object
}

// of returns the actions on the objects of a case: objects owned by its Kustomization, and objects that
// diff has reported.
func (w clusterChanges) of(c diffCase, r *diff.Result) map[string]diff.Action {
	return w.actions(r, func(o controllers.Object) bool {
		return note(o, "labels", "kustomize.toolkit.fluxcd.io/name") == c.name
	})
}

// note returns a label or an annotation of an object, or "".
func note(o controllers.Object, at, key string) string {
	v, _ := controllers.Path{"metadata." + at}.Lookup(o)
	m, _ := v.(map[string]any)
	text, _ := m[key].(string)
	return text
}

// actions returns the actions on objects that owned accepts, and on objects that diff has reported.
func (w clusterChanges) actions(r *diff.Result, owned func(controllers.Object) bool) map[string]diff.Action {
	about := map[string]bool{}
	for _, change := range r.Changes {
		about[change.Object.String()] = true
	}
	mine := func(o controllers.Object) bool { return about[named(o)] || owned(o) }
	done := map[string]diff.Action{}
	for name, events := range w.events {
		before := w.start[name]
		if mine(before) || mine(events[len(events)-1].Object) {
			if now := w.last[name]; now != nil && !events[len(events)-1].Deleted {
				// A watch started before a CRD changed returns objects in the old version.
				events = append(slices.Clone(events), kube.Event{Object: now})
			}
			if action := happened(before, events); action != "" {
				done[name] = action
			}
		}
	}
	for name, o := range w.last {
		if text(o, "kind") == gadgets.Kind && mine(o) {
			done[name] = diff.Created
		}
	}
	return done
}

// happened returns the action of a sequence of events, or "" if only fields of the
// server and of controllers have changed.
func happened(before controllers.Object, events []kube.Event) diff.Action {
	last := events[len(events)-1]
	deleted := false
	for _, e := range events[:len(events)-1] {
		deleted = deleted || e.Deleted
	}
	switch {
	case before == nil && !last.Deleted:
		return diff.Created
	case last.Deleted:
		return diff.Pruned
	case deleted:
		return diff.Recreated
	case content(before) != content(last.Object):
		return diff.Changed
	default:
		return ""
	}
}

// content returns the desired state of an object, without status and without the
// metadata of the server and of the Deployment controller.
func content(o controllers.Object) string {
	kept := map[string]any{}
	for key, value := range o {
		if key != "status" && key != "metadata" {
			kept[key] = value
		}
	}
	metadata, _ := o["metadata"].(map[string]any)
	annotations := map[string]any{}
	if m, ok := metadata["annotations"].(map[string]any); ok {
		for key, value := range m {
			if !strings.HasPrefix(key, "deployment.kubernetes.io/") {
				annotations[key] = value
			}
		}
	}
	kept["labels"], kept["annotations"] = metadata["labels"], annotations
	data, err := json.Marshal(kept)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
