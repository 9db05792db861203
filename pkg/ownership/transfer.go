package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/managedfields"
	"github.com/fluxkit/flux/pkg/diff/policy"
)

// entry is an entry of metadata.managedFields.
type entry struct {
	raw map[string]any
	set *fieldpath.Set
}

func (e entry) text(name string) string { return controllers.Path{name}.String(e.raw) }

// transfer is the change of the managed fields of an object.
type transfer struct {
	// moved lists the entries of tools, and others the remaining entries.
	moved, others []entry
	// controller is the index of the entry of the controller in others.
	controller int
}

// transferOf returns the change of the managed fields, and the reason if there are fields that cannot be moved.
func (p *Plan) transferOf(o controllers.Object) (transfer, string, error) {
	list, _ := controllers.Path{"metadata.managedFields"}.Lookup(o)
	raw, _ := list.([]any)
	t := transfer{controller: -1}
	for _, item := range raw {
		m, _ := item.(map[string]any)
		e := entry{m, fieldpath.NewSet()}
		text, err := json.Marshal(m["fieldsV1"])
		if err == nil {
			err = e.set.FromJSON(strings.NewReader(string(text)))
		}
		if err != nil {
			return t, "", fmt.Errorf("reading the managed fields: %w", err)
		}
		if p.tools.has(e.text("manager")) && e.text("subresource") != "status" {
			t.moved = append(t.moved, e)
			continue
		}
		if e.text("manager") == p.Controller && e.text("operation") == "Apply" && e.text("subresource") == "" {
			t.controller = len(t.others)
		}
		t.others = append(t.others, e)
	}
	switch {
	case len(t.moved) == 0:
		return t, "", nil
	case policy.Marked(o, "ssa", "Merge") || policy.Marked(o, "ssa", "IfNotPresent") || policy.Marked(o, "ssa", "Ignore"):
		return t, "its annotation kustomize.toolkit.fluxcd.io/ssa keeps fields of other managers", nil
	case t.controller < 0:
		return t, p.Controller + " has not applied it with server-side apply", nil
	}
	version := t.others[t.controller].text("apiVersion")
	for _, e := range t.moved {
		if e.text("apiVersion") != version {
			return t, fmt.Sprintf("%s has changed it in version %s, and %s in %s", e.text("manager"), e.text("apiVersion"), p.Controller, version), nil
		}
	}
	return t, "", nil
}

// managedFields returns the managed fields after the change.
func (t transfer) managedFields() ([]any, error) {
	var list []any
	for i, e := range t.others {
		if i != t.controller {
			list = append(list, e.raw)
			continue
		}
		set := e.set
		for _, moved := range t.moved {
			set = set.Union(moved.set)
		}
		text, err := set.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding the managed fields: %w", err)
		}
		merged := maps.Clone(e.raw)
		merged["fieldsV1"] = json.RawMessage(text)
		list = append(list, merged)
	}
	return list, nil
}

// exclusive returns the paths that only tools own, shortest first: leaves, and elements of lists.
func (t transfer) exclusive() []fieldpath.Path {
	owned := map[string]bool{} // with all paths above an owned one
	for _, e := range t.others {
		e.set.Iterate(func(path fieldpath.Path) {
			for i := range path {
				owned[path[:i+1].String()] = true
			}
		})
	}
	found := map[string]fieldpath.Path{}
	for _, e := range t.moved {
		leaves := e.set.Leaves()
		e.set.Iterate(func(path fieldpath.Path) {
			if len(path) > 0 && !owned[path.String()] && (leaves.Has(path) || path[len(path)-1].FieldName == nil) {
				found[path.String()] = path.Copy()
			}
		})
	}
	paths := slices.Collect(maps.Values(found))
	slices.SortFunc(paths, func(a, b fieldpath.Path) int { return len(a) - len(b) })
	return paths
}

// fieldsOf returns the fields of an object that tools own, with the result of a dry run without those that only they
// own. reason is set if the fields cannot be moved.
func (p *Plan) fieldsOf(ctx context.Context, l live) (fields []Field, reason string, err error) {
	t, reason, err := p.transferOf(l.object)
	if err != nil || reason != "" || len(t.moved) == 0 {
		return nil, reason, err
	}
	after, exclusive := l.object, t.exclusive()
	if len(exclusive) > 0 {
		without := any((&unstructured.Unstructured{Object: l.object}).DeepCopy().Object)
		for _, path := range exclusive {
			without = managedfields.Replace(without, nil, path)
		}
		after, err = kube.DryRunReplace(ctx, p.client, l.resource, without.(map[string]any), p.Controller)
		switch {
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsConflict(err) || apierrors.IsBadRequest(err):
			return nil, "the dry run without the fields failed: " + err.Error(), nil
		case err != nil:
			return nil, "", fmt.Errorf("dry run of %s: %w", l.id, err)
		}
	}
	seen := map[string]bool{}
	for _, e := range t.moved {
		at, _ := time.Parse(time.RFC3339, e.text("time"))
		e.set.Leaves().Iterate(func(path fieldpath.Path) {
			path = element(path, exclusive)
			f := Field{Object: l.id, Field: path.String(), Manager: e.text("manager"), Effect: Kept}
			if !at.IsZero() {
				f.At = &at
			}
			var there bool
			if f.Value, there = managedfields.At(l.object, path); !there || seen[f.Manager+f.Field] {
				return
			}
			seen[f.Manager+f.Field] = true
			f.compare(after, path)
			if l.id.IsSecret() && !strings.HasPrefix(f.Field, ".metadata.labels") { // annotations can contain a copy of the data
				f.Value, f.Default = masked, nil
			}
			fields = append(fields, f)
		})
	}
	return fields, "", nil
}

// element returns the element of a list that is removed with a field, or else the field.
func element(field fieldpath.Path, exclusive []fieldpath.Path) fieldpath.Path {
	for _, path := range exclusive { // shortest first
		if path[len(path)-1].FieldName == nil && len(path) <= len(field) && path.Equals(field[:len(path)]) {
			return path
		}
	}
	return field.Copy()
}

// masked replaces values of Secrets.
const masked = "*****"

// compare sets the effect from the result of the dry run.
func (f *Field) compare(after controllers.Object, path fieldpath.Path) {
	value, there := managedfields.At(after, path)
	before, _ := json.Marshal(f.Value) // decoded from JSON
	now, _ := json.Marshal(value)
	switch {
	case !there:
		f.Effect = Removed
	case string(before) != string(now):
		f.Effect, f.Default = Default, value
	}
}

// attempts is the maximum number of writes of an object that others change at the same time.
const attempts = 5

// Failure is the error for an object.
type Failure struct {
	Object controllers.ID
	Err    error
}

// Move moves the ownership of the fields. It continues with the other objects after an error.
func (p *Plan) Move(ctx context.Context) []Failure {
	failed := make([]error, len(p.lives))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, l := range p.lives {
		g.Go(func() error {
			failed[i] = p.move(ctx, l)
			return nil
		})
	}
	_ = g.Wait() // the goroutines return nil
	var list []Failure
	for i, err := range failed {
		if err != nil {
			list = append(list, Failure{p.lives[i].id, err})
		}
	}
	return list
}

// move writes the managed fields of an object. If it was changed in the meantime, it is read again.
func (p *Plan) move(ctx context.Context, l live) error {
	var err error
	for range attempts {
		var t transfer
		var reason string
		if t, reason, err = p.transferOf(l.object); err != nil || reason != "" {
			return errors.Join(err, reasonError(reason))
		}
		if len(t.moved) == 0 {
			return nil
		}
		fields, failed := t.managedFields()
		if failed != nil {
			return failed
		}
		version := controllers.Path{"metadata.resourceVersion"}.String(l.object)
		change := map[string]any{"metadata": map[string]any{"resourceVersion": version, "managedFields": fields}}
		if _, err = p.client.MergePatch(ctx, l.resource, l.id.Namespace, l.id.Name, change); !apierrors.IsConflict(err) {
			break
		}
		if l.object, err = p.client.Get(ctx, l.resource, l.id.Namespace, l.id.Name); err != nil {
			break
		}
	}
	if apierrors.IsNotFound(err) {
		return nil // deleted in the meantime
	}
	return err
}

func reasonError(reason string) error {
	if reason == "" {
		return nil
	}
	return errors.New(reason)
}
