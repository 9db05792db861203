package rollback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/managedfields"
	"github.com/fluxkit/flux/pkg/tree"
)

// Plan describes the changes of a rollback, or of restoring the state before it.
type Plan struct {
	Object controllers.ID `json:"object"`
	// CurrentRevision is the last attempted revision. TargetRevision is "" if the field does not select a single one.
	CurrentRevision string `json:"currentRevision,omitempty"`
	TargetRevision  string `json:"targetRevision,omitempty"`
	// Pinned is the object with the field: the source, or the HelmRelease itself.
	Pinned controllers.ID `json:"pinned"`
	Field  string         `json:"field"`
	// Before and After are the values of the field, or "" if it is not set.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Affected lists the other objects that use the source and change with it.
	Affected []controllers.ID `json:"affected,omitempty"`
	// Suspend lists the objects that would revert the field, and Resume the objects that the rollback suspended.
	Suspend []controllers.ID `json:"suspend,omitempty"`
	Resume  []controllers.ID `json:"resume,omitempty"`
	// Notes lists limits of the rollback, and Unknown the checks that failed.
	Notes   []string `json:"notes,omitempty"`
	Unknown []string `json:"unknown,omitempty"`

	client         *kube.Client
	object, pinned objref.Target
	// owners lists the objects in Suspend or Resume.
	owners []objref.Target
	// record is the recorded state before the rollback.
	record *record
	undo   bool
	// chart is the version of the chart of a release at TargetRevision, "" if it is unknown.
	chart string
}

// New returns the plan that rolls an object back to a revision, "" for the last good revision. It reads the cluster
// and changes nothing.
func New(ctx context.Context, client *kube.Client, t objref.Target, revision string) (*Plan, error) {
	p, err := read(ctx, client, t)
	if err != nil {
		return nil, err
	}
	for _, used := range []objref.Target{p.object, p.pinned} {
		if used.Kind.Suspension.Is(used.Object) {
			return nil, hint.Errorf(hint.Command("flux resume "+used.Kind.Noun()+" %s -n %s", used.Name, used.Namespace), "%s is suspended, so it cannot be rolled back", used)
		}
	}
	if p.TargetRevision, err = p.target(revision); err != nil {
		return nil, err
	}
	p.After = p.value(p.TargetRevision)
	if p.After == p.value(p.CurrentRevision) {
		return nil, fmt.Errorf("%s is already at %s", p.object, controllers.Shorten(p.CurrentRevision))
	}
	if err := p.addOwner(ctx); err != nil {
		return nil, err
	}
	p.record = p.recordOf()
	return p, p.addAffected(ctx)
}

// read finds the field that selects the revision of an object, and reads the object that has it.
func read(ctx context.Context, client *kube.Client, t objref.Target) (*Plan, error) {
	if err := t.Read(ctx, client); err != nil {
		return nil, err
	}
	p := &Plan{client: client, Object: t.Named(), object: t, pinned: t}
	var err error
	if p.Field, err = chartField(t); err != nil {
		return nil, err
	}
	if p.Field == "" {
		if err := p.readSource(ctx); err != nil {
			return nil, err
		}
	}
	p.Pinned = p.pinned.Named()
	p.CurrentRevision = p.Current(t.Object)
	p.Before = controllers.Path{p.Field}.String(p.pinned.Object)
	return p, nil
}

// readSource reads the source of the object, whose kind determines the field.
func (p *Plan) readSource(ctx context.Context) error {
	sources := p.object.Kind.SourceOf(p.object.Object)
	if len(sources) != 1 {
		return fmt.Errorf("%s has no source", p.object)
	}
	k, _ := sources[0].Flux()
	if k.Fetch.Pin == "" {
		return hint.Errorf("restore the previous content of the source", "%s cannot be pinned: a %s has no field that selects a revision", sources[0], sources[0].Kind)
	}
	p.pinned, p.Field = objref.Target{Kind: k, Namespace: sources[0].Namespace, Name: sources[0].Name}, k.Fetch.Pin
	return p.pinned.Read(ctx, p.client)
}

// chartField returns the field of a release that selects its chart, or "" for another kind or a release whose chart is
// an object of its own.
func chartField(t objref.Target) (string, error) {
	o := t.Object
	if _, own := (controllers.Path{"spec.chart.spec"}).Lookup(o); !t.Kind.Release || !own {
		return "", nil
	}
	if chart := t.Kind.Upstream(o); len(chart) == 1 {
		if k, _ := chart[0].Flux(); strings.HasSuffix(k.Fetch.Pin, ".digest") {
			return "spec.chart." + k.Fetch.Pin, nil
		}
	}
	source := t.Kind.SourceOf(o)
	if len(source) != 1 {
		return "", fmt.Errorf("%s has no chart", t)
	}
	if k, _ := source[0].Flux(); k.Fetch.Charts {
		return "spec.chart.spec.version", nil
	}
	return "", hint.Errorf("restore the previous content of the source: revert the commit and push", "the chart of %s is in %s, which has no versions", t, source[0])
}

// addOwner adds the owner of the pinned object to the plan, if the owner would revert the field. Server-side apply keeps
// fields that the owner has not set.
func (p *Plan) addOwner(ctx context.Context) error {
	id, ok := controllers.Manager(p.pinned.Object)
	k, known := id.Flux()
	switch {
	case !ok || !known:
		return nil
	case id == p.Object:
		return hint.Errorf("open a pull request in a clone of the source: "+hint.Command("flux rollback "+p.object.Kind.Noun()+" %s -n %s --pull-request", p.object.Name, p.object.Namespace),
			"%s applies its own source %s: a pin would depend on the revision that it selects", p.object, p.Pinned)
	case !sets(p.pinned.Object, k.Manager, p.Field):
		return nil
	}
	owner := objref.Target{Kind: k, Namespace: id.Namespace, Name: id.Name}
	err := owner.Read(ctx, p.client)
	if missing := (*objref.NotFoundError)(nil); errors.As(err, &missing) || err == nil && k.Suspension.Is(owner.Object) {
		return nil
	}
	p.owners, p.Suspend = append(p.owners, owner), append(p.Suspend, id)
	return err
}

// sets reports whether a field manager has set a field, or whether that is unknown.
func sets(o controllers.Object, manager, field string) bool {
	managers := managedfields.Of(o)
	var path []string
	for _, name := range strings.Split(field, ".") {
		path = append(path, "f:"+name)
	}
	return len(managers) == 0 || slices.ContainsFunc(managers, func(m managedfields.Manager) bool { return m.Name == manager && m.Owns(path) })
}

// addAffected adds the other objects that use the source.
func (p *Plan) addAffected(ctx context.Context) error {
	if p.Pinned == p.Object {
		return nil
	}
	g, gaps, err := tree.Dependencies(ctx, p.client, "")
	if err != nil {
		return err
	}
	for _, gap := range gaps {
		p.Unknown = append(p.Unknown, fmt.Sprintf("whether %s use %s: %v", gap.Resource, p.Pinned, gap.Err))
	}
	seen := map[controllers.ID]bool{p.Pinned: true, p.Object: true}
	var walk func(controllers.ID)
	walk = func(source controllers.ID) {
		for _, e := range g.To(source) {
			if seen[e.From] || e.Relation != "source" && e.Relation != "include" {
				continue
			}
			seen[e.From] = true
			if k, _ := e.From.Flux(); k.Applies() {
				p.Affected = append(p.Affected, e.From)
			}
			walk(e.From)
		}
	}
	walk(p.Pinned)
	slices.SortFunc(p.Affected, controllers.ID.Compare)
	return nil
}
