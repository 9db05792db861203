package testrun

import (
	"context"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// Applied returns the manifest from which an object was applied: the API version and the fields that the
// last applier owns, without defaults. It returns false for an object that was not applied.
func Applied(o *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
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

// warnings collects the API server warnings for the requests of a context.
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

// Attempt is the response of an API server to a manifest.
type Attempt struct {
	Warnings []string
	// Removed lists the fields that do not exist in the API version.
	Removed []string
	// NotServed reports whether the API server does not serve the API version.
	NotServed bool
	// Err is the error if the manifest is rejected for another reason.
	Err error
}

// Try dry-runs a manifest with strict field validation, which rejects unknown fields.
func (r *Run) Try(ctx context.Context, m *unstructured.Unstructured) (Attempt, error) {
	w := &warnings{}
	_, err := kube.DryRun(context.WithValue(ctx, warningsKey{}, w), r.strict, kube.ResourceFor(m.GroupVersionKind()), m.Object,
		kube.Applier{Manager: policy.Name, Strict: true})
	if ctx.Err() != nil {
		return Attempt{}, context.Cause(ctx)
	}
	a := Attempt{Warnings: w.list, NotServed: kube.NotServed(err), Removed: Undeclared(err)}
	if !a.NotServed && len(a.Removed) == 0 {
		a.Err = err
	}
	return a, nil
}

// unknownField matches the field in the API server's messages from server-side apply and from
// strict decoding.
var unknownField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:\.([A-Za-z0-9_.\[\]"=-]+): field not declared in schema|unknown field "([^"]+)")`)
})

// Undeclared returns the fields that an API server has rejected because the schema does not define them.
func Undeclared(err error) []string {
	if err == nil {
		return nil
	}
	var fields []string
	for _, m := range unknownField().FindAllStringSubmatch(err.Error(), -1) {
		if field := m[1] + m[2]; !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// Authored returns the manifest of a cluster object: as it was applied or, if it was not applied,
// as a user would write it. It returns nil for an object that a controller has created.
func Authored(o controllers.Object) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: o}
	if len(object.GetOwnerReferences()) > 0 {
		return nil
	}
	if m, ok := Applied(object); ok {
		return m
	}
	return &unstructured.Unstructured{Object: controllers.Manifest(o)}
}
