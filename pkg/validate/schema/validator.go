package schema

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// Validator implements verdict.Schemas. It caches compiled definitions.
type Validator struct {
	mu       sync.Mutex
	versions map[string]*loaded
	known    map[[sha256.Size]byte]outcome
	// compiled holds the JSON schemas by their text.
	compiled map[[sha256.Size]byte]compiled
}

// outcome is a CustomResourceDefinition, or the reason why it is invalid.
type outcome struct {
	*definition
	problems []verdict.Problem
	err      error
	// assumed is set if the CustomResourceDefinition is not among the objects.
	assumed bool
}

// NewValidator returns a validator.
func NewValidator() *Validator {
	return &Validator{
		versions: map[string]*loaded{}, known: map[[sha256.Size]byte]outcome{}, compiled: map[[sha256.Size]byte]compiled{},
	}
}

// Validate implements verdict.Schemas.
func (v *Validator) Validate(ctx context.Context, r verdict.Request) ([]verdict.Verdict, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.versions[r.Kubernetes] == nil {
		l, err := load(r.Kubernetes)
		if err != nil {
			return nil, err
		}
		v.versions[r.Kubernetes] = l
	}
	c := &cluster{Validator: v, loaded: v.versions[r.Kubernetes], minor: r.Kubernetes, definitions: map[schema.GroupKind]outcome{}, schemas: map[schema.GroupVersionKind]json.RawMessage{}}
	for _, s := range r.Schemas {
		c.schemas[s.Kind] = s.Text
	}
	for _, text := range r.CRDs {
		c.define(ctx, text, true)
	}
	for _, text := range r.Objects { // definitions in the repository replace others
		c.define(ctx, text, false)
	}
	verdicts := make([]verdict.Verdict, len(r.Objects))
	for i, text := range r.Objects {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		verdicts[i] = c.validate(ctx, text)
	}
	return verdicts, nil
}

// cluster validates the objects of one cluster.
type cluster struct {
	*Validator
	*loaded
	// minor is the Kubernetes minor version.
	minor       string
	definitions map[schema.GroupKind]outcome
	// schemas holds the JSON schemas of kinds without a definition.
	schemas map[schema.GroupVersionKind]json.RawMessage
}

// define adds the kind of an object if it is a CustomResourceDefinition.
func (c *cluster) define(ctx context.Context, text json.RawMessage, assumed bool) {
	var o struct {
		APIVersion, Kind string
		Spec             struct {
			Group string
			Names struct{ Kind string }
		}
	}
	if err := json.Unmarshal(text, &o); err != nil || o.Kind != "CustomResourceDefinition" || o.APIVersion != apiextensions.GroupName+"/v1" {
		return
	}
	d := c.definition(ctx, text)
	d.assumed = assumed
	c.definitions[schema.GroupKind{Group: o.Spec.Group, Kind: o.Spec.Names.Kind}] = d
}

func (v *Validator) definition(ctx context.Context, text json.RawMessage) outcome {
	key := sha256.Sum256(text)
	if known, ok := v.known[key]; ok {
		return known
	}
	d, invalid, err := decode(ctx, text)
	known := outcome{definition: d, problems: fromErrors(verdict.RuleSchema, invalid), err: err}
	v.known[key] = known
	return known
}

// validate validates an object.
func (c *cluster) validate(ctx context.Context, text json.RawMessage) verdict.Verdict {
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &o.Object); err != nil {
		return verdict.Verdict{Unknown: err.Error()}
	}
	gvk := o.GroupVersionKind()
	if kind, ok := c.kinds[GVK{gvk.Group, gvk.Version, gvk.Kind}]; ok {
		result := c.builtin(o, kind)
		if gvk.Group == apiextensions.GroupName && len(result.Problems) == 0 {
			d := c.Validator.definition(ctx, text)
			result.Problems = append(result.Problems, d.problems...)
			if d.err != nil {
				result.Problems = append(result.Problems, verdict.Problem{Rule: verdict.RuleSchema, Message: d.err.Error()})
			}
		}
		return result
	}
	if d, ok := c.definitions[gvk.GroupKind()]; ok {
		result := c.custom(ctx, o, d)
		result.Assumed = d.assumed
		return result
	}
	if text, ok := c.schemas[gvk]; ok {
		return c.published(ctx, o, text)
	}
	if c.groups[gvk.Group] || removed(gvk, c.minor) != "" {
		return c.notServed(gvk)
	}
	return verdict.Verdict{MissingSchema: true, Unknown: "no schema found: the repository has no CustomResourceDefinition for the kind"}
}

// builtin validates an object of a Kubernetes kind.
func (c *cluster) builtin(o *unstructured.Unstructured, kind Kind) verdict.Verdict {
	w := &walk{loaded: c.loaded}
	w.value(nil, c.Schemas[kind.Schema], kind.Schema, o.Object)
	problems := w.problems
	if len(problems) == 0 {
		problems = append(metadata(o, kind.Namespaced, nameRule(kind.GVK)), rulesOf(o)...)
	}
	return verdict.Verdict{Problems: problems, Deprecated: deprecated(o.GroupVersionKind(), c.minor), Namespaced: kind.Namespaced}
}

// custom validates an object of a kind that a CustomResourceDefinition defines.
func (c *cluster) custom(ctx context.Context, o *unstructured.Unstructured, d outcome) verdict.Verdict {
	if d.err != nil || len(d.problems) > 0 {
		return verdict.Verdict{Unknown: "its CustomResourceDefinition is invalid"}
	}
	namespaced := d.spec.Scope == "Namespaced"
	v, err := d.version(o.GroupVersionKind().Version)
	if err != nil {
		return verdict.Verdict{Unknown: "reading its CustomResourceDefinition: " + err.Error()}
	}
	if v == nil {
		return verdict.Verdict{Namespaced: namespaced, Problems: []verdict.Problem{{
			Rule: verdict.RuleAPIVersion, Field: "apiVersion", Path: []string{"apiVersion"},
			Message: fmt.Sprintf("the CustomResourceDefinition of %s serves %s, not %s", o.GetKind(), strings.Join(d.served(), ", "), o.GroupVersionKind().Version),
		}}}
	}
	result := verdict.Verdict{Problems: append(c.metadata(o, namespaced), v.validate(ctx, o)...), Namespaced: namespaced}
	if at := slices.IndexFunc(d.spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool {
		return v.Name == o.GroupVersionKind().Version
	}); d.spec.Versions[at].Deprecated {
		result.Deprecated = o.GetAPIVersion() + " " + o.GetKind() + " is deprecated"
		if warning := d.spec.Versions[at].DeprecationWarning; warning != nil && *warning != "" {
			result.Deprecated = *warning
		}
	}
	return result
}

// metadata validates the metadata of a custom resource.
func (c *cluster) metadata(o *unstructured.Unstructured, namespaced bool) []verdict.Problem {
	w := &walk{loaded: c.loaded}
	if w.value([]string{"metadata"}, &Schema{Ref: objectMeta}, "", o.Object["metadata"]); len(w.problems) > 0 {
		return w.problems
	}
	return metadata(o, namespaced, validation.NameIsDNSSubdomain)
}

// objectMeta is the schema of metadata.
const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// metadata validates names, labels and annotations. A missing namespace is not a problem: Flux may
// set it.
func metadata(o *unstructured.Unstructured, namespaced bool, name validation.ValidateNameFunc) []verdict.Problem {
	o = &unstructured.Unstructured{Object: map[string]any{"metadata": o.Object["metadata"]}}
	o = o.DeepCopy()
	switch {
	case namespaced && o.GetNamespace() == "":
		o.SetNamespace("default")
	case !namespaced:
		o.SetNamespace("") // it is ignored
	}
	return fromErrors(verdict.RuleSchema, validation.ValidateObjectMetaAccessor(o, namespaced, name, field.NewPath("metadata")))
}

// nameRule returns the name rule for all objects of a kind. Some kinds have stricter rules.
func nameRule(kind GVK) validation.ValidateNameFunc {
	switch {
	case kind.Group == "rbac.authorization.k8s.io" || kind.Kind == "IPAddress" || kind.Group == "certificates.k8s.io":
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case kind.Group == "" && kind.Kind == "Namespace":
		return validation.ValidateNamespaceName
	}
	return validation.NameIsDNSSubdomain
}
