package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/crd"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// schemas validates the objects with their schemas.
func (c *cluster) schemas(ctx context.Context) error {
	crds, err := encoded(c.CRDs)
	if err != nil {
		return err
	}
	request := verdict.Request{Kubernetes: c.Kubernetes, CRDs: crds}
	var asked []*object
	for _, o := range c.objects {
		content, ok := readable(o.Object)
		if !ok {
			c.add(o, Finding{Severity: Unknown, Rule: RuleNotValidated, Message: encryptedReason(o.Object)})
			continue
		}
		text, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", o.ref, err)
		}
		asked, request.Objects = append(asked, o), append(request.Objects, text)
	}
	verdicts, err := c.Schemas.Validate(ctx, request)
	if err != nil {
		return err
	}
	everywhere, err := c.violations(ctx, request, verdicts)
	if err != nil {
		return err
	}
	for i, v := range verdicts {
		if err := c.record(asked[i], v, everywhere[i]); err != nil {
			return err
		}
	}
	return nil
}

// encryptedReason returns why an object is still encrypted.
func encryptedReason(o build.Object) string {
	if o.Withheld {
		return "not decrypted: " + build.ErrUntrusted.Error()
	}
	return "it is encrypted with SOPS, and no decryption key is available"
}

// readable returns an object without its encrypted values. It also removes the type of a Secret, because the type's rules
// concern the values. It returns false if any field may be encrypted.
func readable(o build.Object) (map[string]any, bool) {
	_, encrypted := o.Object["sops"]
	secret := controllers.IDOf(o.Unstructured.Object).IsSecret()
	if !secret || !encrypted && !o.Partial {
		return o.Object, !encrypted
	}
	content := maps.Clone(o.Object)
	delete(content, "sops")
	delete(content, "type") // the rules of the type concern the values
	for _, field := range []string{"data", "stringData"} {
		values, ok := content[field].(map[string]any)
		if !ok {
			continue
		}
		plain := map[string]any{}
		for key, value := range values {
			if text, ok := value.(string); ok && strings.HasPrefix(text, "ENC[") {
				value = ""
			}
			plain[key] = value
		}
		content[field] = plain
	}
	return content, true
}

// record adds the findings of a validation result. everywhere holds the problems that occur with all supported Flux
// versions.
func (c *cluster) record(o *object, v verdict.Verdict, everywhere map[problem]bool) error {
	if v.Unknown != "" {
		f := Finding{Severity: Unknown, Rule: RuleNotValidated, Message: v.Unknown, Fix: v.Fix}
		switch {
		case v.MissingSchema:
			f.Rule = RuleMissingSchema
		case v.Unreadable:
			f.Rule = RuleSchemaLocation
		}
		c.add(o, f)
	}
	if v.Assumed {
		c.note("the repository contains no Flux CustomResourceDefinitions: using those of Flux " + c.FluxVersion)
	}
	for _, p := range v.Problems {
		f := c.finding(o, p)
		if v.Source != "" {
			f.Message += "; in the schema " + v.Source
		}
		if v.Assumed && c.Assumed && f.Severity == Invalid && !everywhere[problemOf(p)] {
			old, err := outdated(c, o, p)
			if err != nil {
				return err
			}
			if f.Message = cmp.Or(old, f.Message); old == "" {
				f.Severity, f.Rule = Unknown, RuleNotValidated
				c.qualify(&f)
			}
		}
		c.add(o, f)
	}
	if v.Deprecated != "" {
		f := Finding{Severity: Warning, Rule: RuleDeprecated, Field: "apiVersion", Message: v.Deprecated, Fix: migration(o)}
		if v.Assumed && c.Assumed {
			c.qualify(&f) // older Flux versions may not serve the newer API version
		}
		c.add(o, f)
	}
	if v.Namespaced && o.ref.Namespace == "" && !build.IsHelmRelease(o.side.Owner) {
		f := Finding{Severity: Invalid, Rule: RuleNamespace, Field: "metadata.namespace", Message: "namespace not specified", Fix: "set metadata.namespace"}
		if build.IsKustomization(o.side.Owner) {
			f.Fix += ", or spec.targetNamespace of " + controllers.IDOf(o.side.Owner.Object).String()
		}
		c.add(o, f)
	}
	return nil
}

// outdated describes an API version that no supported Flux version serves, or returns "". It ignores API versions that are
// later than the served versions, because later Flux versions may serve them.
func outdated(c *cluster, o *object, p verdict.Problem) (string, error) {
	if p.Rule != verdict.RuleAPIVersion || c.Supported == nil || !slices.Contains(controllers.Groups(), o.ref.Group) {
		return "", nil
	}
	crds, err := c.Supported()
	if err != nil {
		return "", err
	}
	var served []string
	for _, definition := range crds {
		if crd.Kind(definition.Object) == o.ref.GroupKind() {
			served = append(served, crd.Of(definition.Object).Served...)
		}
	}
	slices.SortFunc(served, version.CompareKubeAwareVersionStrings)
	if len(served) == 0 || version.CompareKubeAwareVersionStrings(o.ref.Version, served[0]) >= 0 {
		return "", nil
	}
	return fmt.Sprintf("no supported version of Flux serves %s %s: use %s", o.Object.GetAPIVersion(), o.ref.Kind, served[len(served)-1]), nil
}

// text returns a string in an object, or "".
func text(o *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, fields...)
	return value
}

// qualify adds to a finding that the cluster may have another Flux version.
func (c *cluster) qualify(f *Finding) {
	f.Assumed = true
	f.Message += "; according to the CustomResourceDefinition of Flux " + c.FluxVersion + ", which may differ from the version on the cluster"
	f.Fix = "set the version of Flux on the cluster with --flux-version"
}

// finding returns the finding about a problem. It contains no values of Secrets.
func (c *cluster) finding(o *object, p verdict.Problem) Finding {
	f := Finding{Severity: Invalid, Rule: p.Rule, Field: p.Field, Message: p.Message}
	sensitive := controllers.IDOf(o.Unstructured.Object).IsSecret() || o.Encrypted || len(o.Secret) > 0
	switch {
	case sensitive && p.Rule == verdict.RuleCEL: // the message may contain values
		f.Message = "a validation rule of its CustomResourceDefinition fails"
	case sensitive && p.Rule == verdict.RuleServer:
		f.Message = "rejected by the API server"
	case !sensitive && p.Value != "":
		f.Message += " (value: " + shortened(p.Value) + ")"
	}
	lacking := c.graph.Lacking(controllers.IDOf(o.side.Owner.Object))
	switch {
	case len(lacking) == 0 || p.Rule == verdict.RuleUnknownField && build.IsKustomization(o.side.Owner):
	case operator.Renders(o.side.Owner) && !o.Partial:
	case !build.IsKustomization(o.side.Owner):
		f.Severity, f.Rule = Unknown, RuleNotRendered
	case substituted(valueAt(o.Object.Object, p)):
		f.Severity, f.Rule = Unknown, RuleVariable
	}
	if p.Rule == verdict.RuleAPIVersion && f.Severity == Invalid {
		f.Fix = migration(o)
	}
	return f
}

// migration returns the remedy for an old Flux API version.
func migration(o *object) string {
	if slices.Contains(controllers.Groups(), o.ref.Group) && o.side.Build != nil && build.IsKustomization(o.side.Owner) {
		return "flux migrate -f ."
	}
	return ""
}

// valueMax bounds the values in messages.
const valueMax = 100

func shortened(value string) string {
	if len(value) <= valueMax {
		return value
	}
	return strings.ToValidUTF8(value[:valueMax], "") + "…"
}

// recognizable is the minimum length of a string that is masked as a secret value.
const recognizable = 4

// masked replaces secret values in a string.
func masked(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= recognizable {
			text = strings.ReplaceAll(text, secret, redact.Mask)
		}
	}
	return text
}

// valueAt returns the value that a problem refers to: the value of the innermost existing parent of
// its field.
func valueAt(value any, p verdict.Problem) any {
	path := p.Path
	if path == nil {
		path = strings.FieldsFunc(p.Field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	}
	for _, step := range path {
		switch in := value.(type) {
		case map[string]any:
			inner, ok := in[step]
			if !ok {
				return value
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return value
			}
			value = in[i]
		}
	}
	return value
}

// substituted reports whether a value contains variables that were not substituted.
func substituted(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			if substituted(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, substituted)
	case string:
		return strings.Contains(value, "${")
	}
	return false
}

func exceeded(err error) bool {
	var limit *budget.ExceededError
	return errors.As(err, &limit)
}
