package schema

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// quantity is the schema of quantities, which has no type.
const quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity"

// zeroAccepted lists fields that the schema requires but the API server does not, because their
// zero value is valid.
var zeroAccepted = map[string]bool{
	"io.k8s.api.apps.v1.ControllerRevision.revision":                                                   true,
	"io.k8s.api.batch.v1.PodFailurePolicy.rules":                                                       true,
	"io.k8s.api.core.v1.HTTPHeader.value":                                                              true,
	"io.k8s.api.core.v1.ISCSIPersistentVolumeSource.lun":                                               true,
	"io.k8s.api.core.v1.ISCSIVolumeSource.lun":                                                         true,
	"io.k8s.api.core.v1.LimitRangeSpec.limits":                                                         true,
	"io.k8s.api.core.v1.SleepAction.seconds":                                                           true,
	"io.k8s.api.core.v1.Sysctl.value":                                                                  true,
	"io.k8s.api.resource.v1.DeviceClass.spec":                                                          true,
	"io.k8s.api.resource.v1.ResourceClaim.spec":                                                        true,
	"io.k8s.api.resource.v1.ResourceClaimTemplate.spec":                                                true,
	"io.k8s.api.resource.v1.ResourceClaimTemplateSpec.spec":                                            true,
	"io.k8s.api.storage.v1.CSIDriver.spec":                                                             true,
	"io.k8s.api.storage.v1.CSINodeSpec.drivers":                                                        true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion.served":  true,
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion.storage": true,
}

// walk validates a value with a Kubernetes schema.
type walk struct {
	*loaded
	problems []verdict.Problem
}

func (w *walk) report(rule string, path []string, message string, value any) {
	p := verdict.Problem{Rule: rule, Field: fieldPath(path), Path: path, Message: message}
	switch value := value.(type) {
	case string:
		p.Value = strconv.Quote(value)
	case bool, int64, float64:
		p.Value = fmt.Sprint(value)
	}
	w.problems = append(w.problems, p)
}

// fieldPath returns a path in the format of Kubernetes messages.
func fieldPath(path []string) string {
	text := ""
	for _, step := range path {
		switch _, err := strconv.Atoi(step); {
		case err == nil:
			text += "[" + step + "]"
		case text == "":
			text = step
		default:
			text += "." + step
		}
	}
	return text
}

func below(path []string, step string) []string { return append(slices.Clone(path), step) }

// value validates a value. name is the name of the schema that declares it, if any. A null value is
// treated as missing.
func (w *walk) value(path []string, s *Schema, name string, value any) {
	for s.Ref != "" {
		name = s.Ref
		if s = w.Schemas[name]; s == nil {
			return
		}
	}
	switch {
	case value == nil:
	case name == quantity:
		w.quantity(path, value)
	case s.Format == "int-or-string":
		w.intOrString(path, value)
	case s.Type == "object":
		w.object(path, s, name, value)
	case s.Type == "array":
		w.array(path, s, value)
	case s.Type != "":
		w.scalar(path, s, value)
	}
}

func (w *walk) object(path []string, s *Schema, name string, value any) {
	o, ok := value.(map[string]any)
	if !ok {
		w.report(verdict.RuleSchema, path, "must be an object, not "+typeOf(value), nil)
		return
	}
	free := s.Properties == nil && s.Additional == nil
	for _, key := range slices.Sorted(maps.Keys(o)) {
		switch property := s.Properties[key]; {
		case property != nil:
			w.value(below(path, key), property, "", o[key])
		case s.Additional != nil:
			w.value(below(path, key), s.Additional, "", o[key])
		case !free:
			w.report(verdict.RuleUnknownField, below(path, key), "unknown field", nil)
		}
	}
	if len(path) > 0 && path[0] == "status" {
		return // the API server ignores the status when an object is created
	}
	for _, key := range s.Required {
		if o[key] == nil && !zeroAccepted[name+"."+key] {
			w.report(verdict.RuleSchema, below(path, key), "required field is missing", nil)
		}
	}
}

func (w *walk) array(path []string, s *Schema, value any) {
	list, ok := value.([]any)
	if !ok {
		w.report(verdict.RuleSchema, path, "must be a list, not "+typeOf(value), nil)
		return
	}
	for i, element := range list {
		if s.Items != nil {
			w.value(below(path, strconv.Itoa(i)), s.Items, "", element)
		}
	}
}

func (w *walk) scalar(path []string, s *Schema, value any) {
	switch v := value.(type) {
	case string:
		if s.Type == "string" {
			w.text(path, s, v)
			return
		}
	case bool:
		if s.Type == "boolean" {
			return
		}
	case int64:
		if s.Type == "integer" && s.Format == "int32" && (v < math.MinInt32 || v > math.MaxInt32) {
			w.report(verdict.RuleSchema, path, "must fit in 32 bits", value)
		}
		if s.Type == "integer" || s.Type == "number" {
			return
		}
	case float64:
		if s.Type == "number" || s.Type == "integer" && v == math.Trunc(v) {
			return
		}
	}
	w.report(verdict.RuleSchema, path, fmt.Sprintf("must be %s, not %s", kindNames[s.Type], typeOf(value)), value)
}

var kindNames = map[string]string{"string": "a string", "boolean": "a boolean", "integer": "an integer", "number": "a number"}

func typeOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	}
	return "a number"
}

func (w *walk) text(path []string, s *Schema, value string) {
	switch {
	case len(s.Enum) > 0 && value != "" && !slices.Contains(s.Enum, value): // an empty text is the default
		w.report(verdict.RuleSchema, path, "must be one of "+list(s.Enum), value)
	case s.Format == "byte":
		if _, err := base64.StdEncoding.DecodeString(value); err != nil {
			w.report(verdict.RuleSchema, path, "must be encoded with Base64", value)
		}
	case s.Format == "date-time":
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			w.report(verdict.RuleSchema, path, "must be a time, such as 2006-01-02T15:04:05Z", value)
		}
	}
}

func list(values []string) string {
	text := ""
	for i, v := range values {
		if i > 0 {
			text += ", "
		}
		text += strconv.Quote(v)
	}
	return text
}

func (w *walk) quantity(path []string, value any) {
	switch value := value.(type) {
	case int64, float64:
	case string:
		if _, err := resource.ParseQuantity(strings.TrimSpace(value)); err != nil {
			w.report(verdict.RuleSchema, path, "must be a quantity, such as 100m or 1Gi", value)
		}
	default:
		w.report(verdict.RuleSchema, path, "must be a quantity, not "+typeOf(value), value)
	}
}

func (w *walk) intOrString(path []string, value any) {
	switch v := value.(type) {
	case string:
	case int64:
		if v < math.MinInt32 || v > math.MaxInt32 {
			w.report(verdict.RuleSchema, path, "must fit in 32 bits", value)
		}
	default:
		w.report(verdict.RuleSchema, path, "must be an integer or a string, not "+typeOf(value), value)
	}
}
