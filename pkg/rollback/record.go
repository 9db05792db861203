package rollback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Annotation is the annotation of a pinned object with the state before the rollback. Controllers ignore it.
const Annotation = "fluxkit.dev/rollback"

// record is the value of Annotation.
type record struct {
	// Object is the object that was rolled back.
	Object string `json:"object"`
	Field  string `json:"field"`
	Value  string `json:"value"`
	// Previous is the value of the field above Field before the rollback, such as spec.ref. It is null if it was not set.
	Previous map[string]any `json:"previous"`
	// Suspended lists the objects that the rollback has suspended.
	Suspended []controllers.ID `json:"suspended,omitempty"`
}

// recorded returns the record of a pinned object, or nil if there is none.
func recorded(t objref.Target) (*record, error) {
	text := controllers.Annotation(t.Object, Annotation)
	if text == "" {
		return nil, nil
	}
	r := &record{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("annotation %s of %s is invalid: %w", Annotation, t, err)
	}
	return r, nil
}

// parent returns the path of the field above a field.
func parent(field string) string { return field[:strings.LastIndex(field, ".")] }

// container returns the value of the field above Field, nil if it is not set.
func (p *Plan) container() map[string]any {
	v, _ := controllers.Path{parent(p.Field)}.Lookup(p.pinned.Object)
	m, _ := v.(map[string]any)
	return m
}

// unchanged reports whether the object was not changed after the rollback.
func (p *Plan) unchanged(r *record) bool {
	want := map[string]any{}
	for name, value := range r.Previous {
		want[name] = value
	}
	want[p.selects()] = r.Value
	// Numbers in the annotation and in the object have different Go types.
	before, err := json.Marshal(want)
	now, failed := json.Marshal(p.container())
	return err == nil && failed == nil && r.Field == p.Field && string(before) == string(now)
}

// recordOf returns the record of the rollback. A second rollback keeps the state before the first one.
func (p *Plan) recordOf() *record {
	r := &record{Object: p.Object.String(), Field: p.Field, Value: p.After, Previous: p.container(), Suspended: p.Suspend}
	if first, err := recorded(p.pinned); err == nil && first != nil { // an invalid one is replaced
		if p.unchanged(first) {
			r.Previous = first.Previous
		}
		for _, owner := range first.Suspended {
			if !slices.Contains(r.Suspended, owner) {
				r.Suspended = append(r.Suspended, owner)
			}
		}
	}
	return r
}

// Undo returns the plan that restores the state before a rollback. It reads the cluster and changes nothing.
func Undo(ctx context.Context, client *kube.Client, t objref.Target) (*Plan, error) {
	p, err := read(ctx, client, t)
	if err != nil {
		return nil, err
	}
	p.undo = true
	if p.record, err = recorded(p.pinned); err != nil {
		return nil, err
	}
	switch {
	case p.record == nil:
		return nil, fmt.Errorf("%s was not rolled back: %s has no annotation %s", t, p.pinned, Annotation)
	case !p.unchanged(p.record):
		return nil, hint.Errorf(fmt.Sprintf("set .%s yourself, and remove the annotation %s", parent(p.Field), Annotation),
			"%s was changed after the rollback: .%s is not the one that the rollback has set", p.pinned, parent(p.Field))
	}
	p.After, _ = p.record.Previous[p.selects()].(string)
	for _, id := range p.record.Suspended {
		k, known := id.Flux()
		owner := objref.Target{Kind: k, Namespace: id.Namespace, Name: id.Name}
		if !known {
			continue
		}
		missing := (*objref.NotFoundError)(nil)
		switch err := owner.Read(ctx, client); {
		case errors.As(err, &missing):
		case err != nil:
			return nil, err
		case k.Suspension.Is(owner.Object) && strings.HasPrefix(controllers.Annotation(owner.Object, controllers.SuspendReasonAnnotation), reason):
			p.owners, p.Resume = append(p.owners, owner), append(p.Resume, id)
		}
	}
	return p, p.addAffected(ctx)
}

// reason is the prefix of the suspension reason that a rollback sets.
const reason = "rollback of "
