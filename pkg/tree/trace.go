package tree

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Trace is the way of an object onto the cluster: what owns it, what has
// applied that, and where this comes from.
type Trace struct {
	Object Object
	// Images are those of the containers, where the object is a workload.
	Images []string
	// Applied is what was applied: the object itself, or the last of Owners.
	Applied controllers.Object
	// Owners own the object, the nearest first; the last one was applied.
	Owners []Object
	// Applier is the Kustomization or the HelmRelease.
	Applier Link
	// Sources are where the applier's content comes from, the nearest first:
	// the HelmChart before its repository.
	Sources []Link
}

// Link is an object of Flux on that way, as it is on the cluster.
type Link struct {
	Object Object
	// Kind is its row of the catalogue.
	Kind controllers.Kind
	// Live is the object; nil where Err says why it could not be read.
	Live controllers.Object
	Err  error
}

// Outcome is how the last reconciliation of a link ended, and the last good one.
type Outcome struct {
	// Status is that of the Ready condition: "True", "False" or "Unknown".
	Status, Reason, Message string
	// Since is when the condition took its status; zero where that is not told.
	Since time.Time
	// Revision is what was last brought about, Attempted what was last tried.
	Revision, Attempted string
	// Good is when a reconciliation last ended well; zero where nobody knows.
	Good time.Time
}

// ErrUnmanaged is returned for an object whose labels name nothing of Flux that
// has applied it.
var ErrUnmanaged = errors.New("it is not managed by Flux")

// The labels by which the controllers mark what they apply.
var appliers = []struct{ kind, prefix string }{
	{"Kustomization", "kustomize.toolkit.fluxcd.io/"},
	{"HelmRelease", "helm.toolkit.fluxcd.io/"},
}

// deepest is how many owners and sources are followed: no real chain is
// longer, and a cycle ends.
const deepest = 8

// Up traces an object to its source. word is the plural, singular, short name or
// kind of its resource, such as "deployment" or "deploy", looked up in apiVersion
// or, where that is empty, in all that the cluster serves.
func Up(ctx context.Context, cfg *rest.Config, apiVersion, word, namespace, name string) (*Trace, error) {
	client, err := kube.New(cfg)
	if err != nil {
		return nil, err
	}
	t := tracer{client}
	r, err := t.resource(ctx, apiVersion, word)
	if err != nil {
		return nil, err
	}
	o, err := t.get(ctx, r, namespace, name)
	if err != nil {
		return nil, err
	}
	trace := &Trace{Object: objectOf(r, o), Images: images(o)}
	top, err := t.owners(ctx, trace, o)
	if err != nil {
		return nil, err
	}
	trace.Applied = top
	applier, ok := applierOf(top)
	if !ok {
		return trace, fmt.Errorf("%s: %w", trace.Object, ErrUnmanaged)
	}
	trace.Applier = t.link(ctx, applier)
	trace.Sources = Above(trace.Applier, func(at controllers.Target) Link { return t.link(ctx, at) })
	return trace, nil
}

type tracer struct{ client *kube.Client }

func (t tracer) resource(ctx context.Context, apiVersion, word string) (kube.Resource, error) {
	if apiVersion == "" {
		return t.client.Named(ctx, word)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return kube.Resource{}, fmt.Errorf("reading the API version %q: %w", apiVersion, err)
	}
	return t.client.NamedIn(ctx, gv, word)
}

// get reads an object, of Flux's kinds in the version that the server has.
func (t tracer) get(ctx context.Context, r kube.Resource, namespace, name string) (controllers.Object, error) {
	if k, ok := controllers.KindOf(r.Group, r.Kind); ok {
		return t.client.GetKind(ctx, k, namespace, name)
	}
	return t.client.Get(ctx, r, namespace, name)
}

func objectOf(r kube.Resource, o controllers.Object) Object {
	return Object{controllers.Namespace(o), controllers.Name(o), schema.GroupKind{Group: r.Group, Kind: r.Kind}}
}

// owners climbs from an object to the one that was applied.
func (t tracer) owners(ctx context.Context, trace *Trace, o controllers.Object) (controllers.Object, error) {
	for range deepest {
		if _, ok := applierOf(o); ok {
			return o, nil
		}
		r, name, ok := controllerOf(o)
		if !ok {
			return o, nil
		}
		owner, err := t.get(ctx, r, controllers.Namespace(o), name)
		if apierrors.IsNotFound(err) {
			served, lookup := t.client.NamedInGroup(ctx, r.Group, r.Kind)
			if lookup == nil && served[0] != r {
				owner, err = t.get(ctx, served[0], controllers.Namespace(o), name)
			}
		}
		if apierrors.IsNotFound(err) {
			return o, nil // it has gone, and what it owned is about to
		}
		if err != nil {
			return nil, fmt.Errorf("reading the owner of %s: %w", controllers.Name(o), err)
		}
		trace.Owners = append(trace.Owners, objectOf(r, owner))
		o = owner
	}
	return o, nil
}

// controllerOf returns what controls an object, by its owner references.
func controllerOf(o controllers.Object) (kube.Resource, string, bool) {
	list, _ := controllers.Path{"metadata.ownerReferences"}.Lookup(o)
	references, _ := list.([]any)
	for _, item := range references {
		m, _ := item.(map[string]any)
		if controls, _ := m["controller"].(bool); controls {
			field := func(name string) string { return controllers.Path{name}.String(m) }
			return kube.Guess(schema.FromAPIVersionAndKind(field("apiVersion"), field("kind"))), field("name"), true
		}
	}
	return kube.Resource{}, "", false
}

// applierOf reads from an object's labels what has applied it.
func applierOf(o controllers.Object) (controllers.Target, bool) {
	for _, a := range appliers {
		name, namespace := kube.Label(o, a.prefix+"name"), kube.Label(o, a.prefix+"namespace")
		if name != "" && namespace != "" {
			return controllers.Target{Kind: a.kind, Namespace: namespace, Name: name}, true
		}
	}
	return controllers.Target{}, false
}

// link reads an object of Flux. That it cannot be read is part of the answer.
func (t tracer) link(ctx context.Context, at controllers.Target) Link {
	k, known := controllers.FindKind(at.Kind)
	link := Link{Object: Object{at.Namespace, at.Name, schema.GroupKind{Group: k.Group, Kind: at.Kind}}, Kind: k}
	if !known {
		link.Err = fmt.Errorf("%s is no kind of Flux", at.Kind)
		return link
	}
	link.Live, link.Err = t.get(ctx, kube.Of(k), at.Namespace, at.Name)
	return link
}

// Outcome says how the last reconciliation of a link ended.
func (l Link) Outcome() Outcome {
	ready := l.Kind.Ready(l.Live)
	out := Outcome{Status: ready.Status, Reason: ready.Reason, Message: ready.Message, Revision: l.Kind.Result.String(l.Live)}
	if c, ok := controllers.FindCondition(l.Live, "Ready"); ok {
		out.Since = moment(c.LastTransitionTime)
	}
	if len(l.Kind.Attempts) > 0 {
		out.Attempted = l.Kind.Attempts[0].Path.String(l.Live)
	}
	out.Good = l.lastGood()
	if ready.Status == "True" {
		out.Good = out.Since
	}
	return out
}

// lastGood reads the history that the controllers keep (fluxcd/pkg/apis/meta,
// Snapshot, and the helm-controller's own).
func (l Link) lastGood() time.Time {
	for _, run := range l.Runs() {
		if run.Good {
			return run.At
		}
	}
	return time.Time{}
}

func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{} // the server writes nothing else
	}
	return t.UTC()
}

// images are those of the containers of a workload's pods, or of a pod.
func images(o controllers.Object) []string {
	var all []string
	for _, at := range []string{"spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec"} {
		for _, list := range []string{".initContainers", ".containers"} {
			v, _ := controllers.Path{at + list}.Lookup(o)
			items, _ := v.([]any)
			for _, item := range items {
				m, _ := item.(map[string]any)
				if image := (controllers.Path{"image"}).String(m); image != "" {
					all = append(all, image)
				}
			}
		}
	}
	return all
}
