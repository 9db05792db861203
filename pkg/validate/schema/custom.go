package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// definition is a valid CustomResourceDefinition.
type definition struct {
	spec apiextensions.CustomResourceDefinitionSpec
	// compiled holds the versions that were used.
	compiled map[string]*version
}

// version is a served version of a definition.
type version struct {
	structural *structural.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
	// status is set if the version has the status subresource.
	status bool
}

// decode reads a CustomResourceDefinition, and returns its problems.
func decode(ctx context.Context, text json.RawMessage) (*definition, field.ErrorList, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var published apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, nil, err
	}
	scheme.Default(&published)
	published.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	var crd apiextensions.CustomResourceDefinition
	if err := scheme.Convert(&published, &crd, nil); err != nil {
		return nil, nil, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = []string{v.Name} // as recorded by the API server on creation
		}
	}
	return &definition{crd.Spec, map[string]*version{}}, crdvalidation.ValidateCustomResourceDefinition(ctx, &crd), nil
}

// served returns the names of the served versions.
func (d *definition) served() []string {
	var names []string
	for _, v := range d.spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}

// version compiles a served version.
func (d *definition) version(name string) (*version, error) {
	if known := d.compiled[name]; known != nil {
		return known, nil
	}
	at := slices.IndexFunc(d.spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return v.Name == name && v.Served })
	if at < 0 {
		return nil, nil
	}
	// The conversion moves the fields that all versions share into the spec.
	published, subresources := d.spec.Versions[at].Schema, d.spec.Versions[at].Subresources
	if published == nil {
		published = d.spec.Validation
	}
	if subresources == nil {
		subresources = d.spec.Subresources
	}
	if published == nil || published.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s has no schema", name)
	}
	v, err := compile(published.OpenAPIV3Schema, subresources != nil && subresources.Status != nil)
	if err != nil {
		return nil, err
	}
	d.compiled[name] = v
	return v, nil
}

// compile compiles a schema.
func compile(published *apiextensions.JSONSchemaProps, status bool) (*version, error) {
	s, err := structural.NewStructural(published)
	if err != nil {
		return nil, err
	}
	v := &version{structural: s, rules: cel.NewValidator(s, true, celconfig.PerCallLimit), status: status}
	v.schema, _, err = validation.NewSchemaValidator(published)
	return v, err
}

// validate returns the violations of the schema and the rules of a version, in the order in which
// the API server checks them. Like the API server, it first removes unknown fields and sets
// defaults.
func (v *version) validate(ctx context.Context, o *unstructured.Unstructured) []verdict.Problem {
	var problems []verdict.Problem
	unknown := pruning.PruneWithOptions(o.Object, v.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, v.structural)
	failed, within := objectmeta.CoerceWithOptions(nil, o.Object, v.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	for _, path := range append(unknown, within...) {
		problems = append(problems, verdict.Problem{Rule: verdict.RuleUnknownField, Field: path, Message: "unknown field"})
	}
	if failed != nil {
		return append(problems, fromError(verdict.RuleSchema, failed))
	}
	defaulting.Default(o.Object, v.structural)
	if v.status {
		delete(o.Object, "status") // the API server ignores it when an object is created
	}
	found := validation.ValidateCustomResource(nil, o.Object, v.schema)
	found = append(found, objectmeta.Validate(nil, o.Object, v.structural, false)...)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, v.structural, o.Object)...)
	problems = append(problems, fromErrors(verdict.RuleSchema, found)...)
	if v.rules != nil && !slices.ContainsFunc(found, blocking) {
		broken, _ := v.rules.Validate(ctx, nil, v.structural, o.Object, nil, celconfig.RuntimeCELCostBudget)
		problems = append(problems, fromErrors(verdict.RuleCEL, broken)...)
	}
	return problems
}

// blocking reports whether a schema violation prevents the evaluation of rules.
func blocking(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

func fromErrors(rule string, errs field.ErrorList) []verdict.Problem {
	var problems []verdict.Problem
	for _, e := range errs {
		problems = append(problems, fromError(rule, e))
	}
	return problems
}

// fromError converts an error of the API server's validation into a problem.
func fromError(rule string, e *field.Error) verdict.Problem {
	p := verdict.Problem{Rule: rule, Field: strings.TrimPrefix(e.Field, "."), Message: e.Detail}
	if p.Field == "<nil>" {
		p.Field = ""
	}
	if _, after, found := strings.Cut(p.Message, " in body "); found {
		p.Message = after // the field precedes the message
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		p.Message = "required field is missing"
	case field.ErrorTypeDuplicate:
		p.Message = "duplicate entry"
	case field.ErrorTypeNotSupported:
		p.Message = "must be one of " + strings.TrimPrefix(e.Detail, "supported values: ")
	case field.ErrorTypeTypeInvalid:
		p.Message = strings.ReplaceAll(p.Message, ": ", ", not ")
		return p // the error contains the type as the value
	}
	if p.Message == "" {
		p.Message = e.Type.String()
	}
	if rule == verdict.RuleCEL {
		return p // the message describes it
	}
	switch value := e.BadValue.(type) {
	case string:
		p.Value = fmt.Sprintf("%q", value)
	case bool, int, int32, int64, float64:
		p.Value = fmt.Sprint(value)
	}
	return p
}
