package ownership

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Effect is the effect of the next apply on a field that is not in the source.
type Effect string

// The effects.
const (
	// Kept fields also have another owner.
	Kept    Effect = "kept"
	Removed Effect = "removed"
	// Default is the effect on a field that the API server sets to another value.
	Default Effect = "default"
)

// Field is a field whose ownership moves.
type Field struct {
	Object  controllers.ID `json:"object"`
	Field   string         `json:"field"`
	Manager string         `json:"manager"`
	At      *time.Time     `json:"at,omitempty"`
	Value   any            `json:"value"`
	Effect  Effect         `json:"effect"`
	// Default is the value that the API server sets.
	Default any `json:"default,omitempty"`
}

// Skipped is an object whose fields cannot be moved.
type Skipped struct {
	Object controllers.ID `json:"object"`
	Reason string         `json:"reason"`
}

// Plan lists the fields whose ownership moves to the controller.
type Plan struct {
	Object controllers.ID `json:"object"`
	// Controller is the field manager of the controller.
	Controller string    `json:"controller"`
	Fields     []Field   `json:"fields"`
	Skipped    []Skipped `json:"skipped,omitempty"`

	client *kube.Client
	tools  tools
	lives  []live
}

// live is an object of the inventory.
type live struct {
	id       controllers.ID
	resource kube.Resource
	object   controllers.Object
}

// atOnce is the maximum number of parallel requests.
const atOnce = 16

// Find reads the objects in the inventory of an object, and determines by a server-side dry run which values would
// change. It changes nothing. more lists additional field managers.
func Find(ctx context.Context, client *kube.Client, t objref.Target, more []string) (*Plan, error) {
	if err := t.Read(ctx, client); err != nil {
		return nil, err
	}
	p := &Plan{Object: t.Named(), Controller: t.Kind.Manager, Fields: []Field{}, client: client, tools: tools(more)}
	if slices.Contains(more, p.Controller) {
		return nil, hint.Errorf("specify the managers from which the fields are moved", "--field-manager=%s is the field manager of %s", p.Controller, t)
	}
	if _, remote := (controllers.Path{"spec.kubeConfig"}).Lookup(t.Object); remote {
		return nil, hint.Errorf("run 'kubectl get --show-managed-fields' in that cluster", "%s applies its objects to another cluster (spec.kubeConfig)", t)
	}
	entries, err := inventory(ctx, client, t)
	if err != nil {
		return nil, err
	}
	if p.lives, err = readAll(ctx, client, entries); err != nil {
		return nil, err
	}
	return p, p.preview(ctx)
}

// inventory returns the objects in the inventory of an object, or in the Helm storage of a release without an inventory.
func inventory(ctx context.Context, client *kube.Client, t objref.Target) ([]controllers.VersionedID, error) {
	if _, ok := t.Kind.Inventory.Lookup(t.Object); ok {
		entries, err := controllers.ParseInventory(t.Object)
		if err != nil {
			return nil, fmt.Errorf("reading the inventory of %s: %w", t, err)
		}
		return entries, nil
	}
	found, gaps, err := tree.Appliers(ctx, client, []controllers.ID{t.Named()})
	if err != nil {
		return nil, err
	}
	for _, gap := range gaps {
		return nil, fmt.Errorf("reading the inventory of %s: %w", t, gap.Err)
	}
	applier := found[t.Named()]
	if applier == nil || !applier.Recorded && !applier.Released {
		return nil, hint.Errorf(hint.Command("flux reconcile "+t.Kind.Noun()+" %s -n %s", t.Name, t.Namespace), "%s has no inventory", t)
	}
	return applier.Objects, applier.Err
}

// readAll reads the objects that exist.
func readAll(ctx context.Context, client *kube.Client, entries []controllers.VersionedID) ([]live, error) {
	kinds := kube.NewKinds(client)
	var wanted []schema.GroupVersionKind
	for _, e := range entries {
		wanted = append(wanted, e.GroupVersionKind())
	}
	if err := kinds.Discover(ctx, wanted...); err != nil {
		return nil, err
	}
	found := make([]live, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, e := range entries {
		r, served := kinds.Of(e.GroupVersionKind())
		if !served {
			continue // no longer served
		}
		g.Go(func() error {
			o, err := client.Get(ctx, r, e.Namespace, e.Name)
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("reading %s: %w", e.ID, err)
			}
			found[i] = live{e.ID, r, o}
			return nil
		})
	}
	err := g.Wait()
	return slices.DeleteFunc(found, func(l live) bool { return l.object == nil }), err
}

// tools lists the additional field managers.
type tools []string

// known lists the field managers of tools with which users change objects. The field managers of kubectl have the prefix "kubectl".
var known = []string{
	"before-first-apply", "curl", "Go-http-client", "helm", "k9s", "Lens", "Mozilla", "node-fetch", "oc", "OpenAPI-Generator", "python-requests",
}

// has reports whether the fields of a field manager are moved. The fields of controllers are not.
func (t tools) has(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || slices.Contains(known, manager) || slices.Contains(t, manager)
}

// Missing returns the additional field managers that own no field.
func (p *Plan) Missing() []string {
	return slices.DeleteFunc(slices.Clone([]string(p.tools)), func(manager string) bool {
		return slices.ContainsFunc(p.Fields, func(f Field) bool { return f.Manager == manager })
	})
}

// Objects returns the number of objects with fields to move.
func (p *Plan) Objects() int { return len(p.lives) }

// preview determines the fields of all objects, and keeps the objects that have some.
func (p *Plan) preview(ctx context.Context) error {
	type result struct {
		fields []Field
		reason string
	}
	results := make([]result, len(p.lives))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, l := range p.lives {
		g.Go(func() (err error) {
			results[i].fields, results[i].reason, err = p.fieldsOf(ctx, l)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var kept []live
	for i, r := range results {
		switch {
		case r.reason != "":
			p.Skipped = append(p.Skipped, Skipped{p.lives[i].id, r.reason})
		case len(r.fields) > 0:
			p.Fields, kept = append(p.Fields, r.fields...), append(kept, p.lives[i])
		}
	}
	p.lives = kept
	slices.SortStableFunc(p.Fields, func(a, b Field) int { return cmp.Or(a.Object.Compare(b.Object), strings.Compare(a.Field, b.Field)) })
	return nil
}
