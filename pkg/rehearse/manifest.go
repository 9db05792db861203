package rehearse

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// authored returns the manifest from which an object was applied: the API version and the fields
// that the last applier owns, without defaults. It returns false for an object that nothing has applied.
func authored(o *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	for _, entry := range o.GetManagedFields() {
		if entry.Operation != "Apply" || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		set := fieldpath.NewSet()
		if set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		fields, _ := owned(o.Object, set).(map[string]any)
		m := &unstructured.Unstructured{Object: fields}
		m.SetAPIVersion(entry.APIVersion)
		m.SetKind(o.GetKind())
		m.SetNamespace(o.GetNamespace())
		m.SetName(o.GetName())
		return m, true
	}
	return nil, false
}

// owned returns a value without the fields that are not in a set. Lists are atomic in the specs of
// Flux objects.
func owned(value any, set *fieldpath.Set) any {
	fields, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	kept := map[string]any{}
	for name, field := range fields {
		element := fieldpath.PathElement{FieldName: &name}
		below := set.WithPrefix(element)
		switch {
		case !below.Empty():
			kept[name] = owned(field, below)
		case set.Members.Has(element):
			kept[name] = field
		}
	}
	return kept
}

// warnings collects the warnings in the responses to the requests of a context.
type warnings struct {
	mu   sync.Mutex
	list []string
}

type warningsKey struct{}

// warningHandler is the rest.WarningHandlerWithContext of dry runs.
type warningHandler struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok || code != 299 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.list, text) {
		w.list = append(w.list, text)
	}
}

// attempt is the answer of an API server to a manifest.
type attempt struct {
	warnings []string
	// removed are the fields that the API version does not have.
	removed []string
	// notServed reports whether the API server does not serve the API version.
	notServed bool
	// err is another reason for which the manifest is rejected.
	err error
}

// try applies a manifest with a dry run, and strictly: unknown fields are rejected.
func (s *side) try(ctx context.Context, m *unstructured.Unstructured) (attempt, error) {
	w := &warnings{}
	_, err := kube.DryRun(context.WithValue(ctx, warningsKey{}, w), s.trial, kube.ResourceFor(m.GroupVersionKind()), m.Object,
		kube.Applier{Manager: policyName, Strict: true})
	if ctx.Err() != nil {
		return attempt{}, context.Cause(ctx)
	}
	a := attempt{warnings: w.list, notServed: kube.NotServed(err), removed: undeclared(err)}
	if !a.notServed && len(a.removed) == 0 {
		a.err = err
	}
	return a, nil
}

// unknownField matches the fields in the two messages of the API server: of server-side apply, and
// of strict decoding.
var unknownField = regexp.MustCompile(`(?:\.([A-Za-z0-9_.\[\]"=-]+): field not declared in schema|unknown field "([^"]+)")`)

// undeclared returns the fields that an API server has rejected because the schema lacks them.
func undeclared(err error) []string {
	if err == nil {
		return nil
	}
	var fields []string
	for _, m := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
		if field := m[1] + m[2]; !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// examination is what two API servers answer to the manifest of a Flux object.
type examination struct {
	kind     controllers.Kind
	manifest *unstructured.Unstructured
	// before and after are the answers to the manifest, and next that to the manifest in the newest
	// API version of the next version of Flux.
	before, after, next attempt
	newest              string
	// early reports whether the present version serves the newest API version, too.
	early bool
}

// examine tries the manifest of an object in both versions.
func examine(ctx context.Context, from, to *side, k controllers.Kind, m *unstructured.Unstructured) (*examination, error) {
	e := &examination{kind: k, manifest: m, newest: to.storage(k)}
	var errs [4]error
	e.before, errs[0] = from.try(ctx, m)
	e.after, errs[1] = to.try(ctx, m)
	if gv, err := schema.ParseGroupVersion(e.newest); err == nil && e.newest != m.GetAPIVersion() {
		migrated := m.DeepCopy()
		migrated.SetGroupVersionKind(gv.WithKind(k.Kind))
		e.next, errs[2] = to.try(ctx, migrated)
		var now attempt
		now, errs[3] = from.try(ctx, migrated)
		e.early = !now.notServed
	}
	return e, errors.Join(errs[:]...)
}

// examined collects examinations.
type examined struct {
	mu   sync.Mutex
	list []*examination
}

func (x *examined) add(e *examination) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = append(x.list, e)
}

// sorted returns the examinations in the order of their objects.
func (x *examined) sorted() []*examination {
	slices.SortFunc(x.list, func(a, b *examination) int {
		return strings.Compare(diff.RefOf(a.manifest).String(), diff.RefOf(b.manifest).String())
	})
	return x.list
}

// Authored returns the manifest of an object of a cluster: as it was applied, if it was, and else
// as a user would write it. It returns nil for an object that a controller has created.
func Authored(o controllers.Object) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: o}
	if len(object.GetOwnerReferences()) > 0 {
		return nil
	}
	if m, ok := authored(object); ok {
		return m
	}
	return &unstructured.Unstructured{Object: controllers.Manifest(o)}
}
