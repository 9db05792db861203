package tree

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Trace is the path from an object to its source: its owners, its applier, and the applier's
// sources.
type Trace struct {
	Object controllers.ID
	// Images lists the container images if the object is a workload.
	Images []string
	// Applied is the applied object: the object itself, or the last of Owners.
	Applied controllers.Object
	// Owners lists the owners of the object, nearest first. The last owner was applied.
	Owners []controllers.ID
	// Applier is the Kustomization or HelmRelease.
	Applier Link
	// Sources lists the sources of the applier, nearest first: the HelmChart before its repository.
	Sources []Link
}

// Link is a Flux object of a trace.
type Link struct {
	Object controllers.ID
	// Kind is the row in the catalog.
	Kind controllers.Kind
	// Live is the live object, nil if Err is set.
	Live controllers.Object
	Err  error
}

// Outcome is the result of the last reconciliation of a link, and the time of
// the last successful one.
type Outcome struct {
	// Status is the status of the Ready condition.
	Status, Reason, Message string
	// Since is the transition time of the condition, zero if unknown.
	Since time.Time
	// Revision is the applied revision, and Attempted the last attempted revision.
	Revision, Attempted string
	// LastSuccess is the time of the last successful reconciliation, zero if unknown.
	LastSuccess time.Time
}

// ErrUnmanaged is returned for an object without owner labels of Flux.
var ErrUnmanaged = errors.New("it is not managed by Flux")

// deepest is the maximum number of owners and sources to follow, so that cycles end.
const deepest = 8

// TraceObject traces an object to its source. word is the plural, singular, short name
// or kind of its resource, such as "deployment" or "deploy", in apiVersion or,
// if that is empty, in any API.
func TraceObject(ctx context.Context, client *kube.Client, apiVersion, word, namespace, name string) (*Trace, error) {
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
	appliers := controllers.Owners(top)
	if len(appliers) == 0 {
		return trace, fmt.Errorf("%s: %w", trace.Object, ErrUnmanaged)
	}
	trace.Applier = t.link(ctx, appliers[0])
	trace.Sources = SourceChain(trace.Applier, func(at controllers.ID) Link { return t.link(ctx, at) })
	return trace, nil
}

type tracer struct{ client *kube.Client }

func (t tracer) resource(ctx context.Context, apiVersion, word string) (kube.Resource, error) {
	if apiVersion == "" {
		return t.client.Discovery().Named(ctx, word)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return kube.Resource{}, fmt.Errorf("reading the API version %q: %w", apiVersion, err)
	}
	return t.client.Discovery().NamedIn(ctx, gv, word)
}

// get reads an object, a Flux object in a version that the API server serves.
func (t tracer) get(ctx context.Context, r kube.Resource, namespace, name string) (controllers.Object, error) {
	if k, ok := controllers.KindOf(r.Group, r.Kind); ok {
		return t.client.GetKind(ctx, k, namespace, name)
	}
	return t.client.Get(ctx, r, namespace, name)
}

func objectOf(r kube.Resource, o controllers.Object) controllers.ID {
	return controllers.ID{Group: r.Group, Kind: r.Kind, Namespace: controllers.Namespace(o), Name: controllers.Name(o)}
}

// owners follows the owner references from an object to the one that was
// applied.
func (t tracer) owners(ctx context.Context, trace *Trace, o controllers.Object) (controllers.Object, error) {
	for range deepest {
		if len(controllers.Owners(o)) > 0 {
			return o, nil
		}
		r, name, ok := controllerOf(o)
		if !ok {
			return o, nil
		}
		owner, err := t.get(ctx, r, controllers.Namespace(o), name)
		if apierrors.IsNotFound(err) {
			served, lookup := t.client.Discovery().NamedInGroup(ctx, r.Group, r.Kind)
			if lookup == nil && served[0] != r {
				owner, err = t.get(ctx, served[0], controllers.Namespace(o), name)
			}
		}
		if apierrors.IsNotFound(err) {
			return o, nil // garbage collection will delete o
		}
		if err != nil {
			return nil, fmt.Errorf("reading the owner of %s: %w", controllers.Name(o), err)
		}
		trace.Owners = append(trace.Owners, objectOf(r, owner))
		o = owner
	}
	return o, nil
}

// controllerOf returns the controller in the owner references of an object.
func controllerOf(o controllers.Object) (kube.Resource, string, bool) {
	list, _ := controllers.Path{"metadata.ownerReferences"}.Lookup(o)
	references, _ := list.([]any)
	for _, item := range references {
		m, _ := item.(map[string]any)
		if controls, _ := m["controller"].(bool); controls {
			field := func(name string) string { return controllers.Path{name}.String(m) }
			return kube.ResourceFor(schema.FromAPIVersionAndKind(field("apiVersion"), field("kind"))), field("name"), true
		}
	}
	return kube.Resource{}, "", false
}

// link reads a Flux object. The link contains the error if it cannot be read.
func (t tracer) link(ctx context.Context, at controllers.ID) Link {
	k, known := at.Flux()
	link := Link{Object: at, Kind: k}
	if !known {
		link.Err = fmt.Errorf("%s is not a Flux kind", at.Kind)
		return link
	}
	link.Live, link.Err = t.get(ctx, kube.Of(k), at.Namespace, at.Name)
	return link
}

// Outcome returns the result of the last reconciliation of a link.
func (l Link) Outcome() Outcome {
	ready := l.Kind.Ready(l.Live)
	out := Outcome{Status: ready.Status, Reason: ready.Reason, Message: ready.Message, Revision: l.Kind.Result.String(l.Live)}
	if c, ok := controllers.FindCondition(l.Live, "Ready"); ok {
		out.Since = moment(c.LastTransitionTime)
	}
	if len(l.Kind.Attempts) > 0 {
		out.Attempted = l.Kind.Attempts[0].Path.String(l.Live)
	}
	out.LastSuccess = l.lastGood()
	if ready.Status == "True" {
		out.LastSuccess = out.Since
	}
	return out
}

// lastGood returns the last success in the history of the object.
func (l Link) lastGood() time.Time {
	for _, run := range l.History() {
		if run.Succeeded {
			return run.At
		}
	}
	return time.Time{}
}

func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{} // the API server does not write such values
	}
	return t.UTC()
}

// images returns the container images of a workload or pod.
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
