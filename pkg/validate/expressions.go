package validate

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/pkg/build"
)

// expressionFields lists the fields with CEL expressions in lists of a Kustomization or HelmRelease spec.
var expressionFields = [...]struct {
	list, field string
	environment expression.Environment
}{
	{"healthCheckExprs", "inProgress", expression.Health},
	{"healthCheckExprs", "failed", expression.Health},
	{"healthCheckExprs", "current", expression.Health},
	{"dependsOn", "readyExpr", expression.Dependency},
}

// checkExpressions reports CEL expressions that do not compile.
func checkExpressions(ctx context.Context, c *cluster) error {
	if c.Expressions == nil {
		return nil
	}
	var request expression.Request
	var objects []*object
	var fields []string
	for _, o := range c.objects {
		set := o.ref.IsResourceSet()
		if !set && !build.IsKustomization(o.Object.Unstructured) && !build.IsHelmRelease(o.Object.Unstructured) {
			continue
		}
		for _, in := range expressionFields {
			if set {
				in.environment = expression.Health // the fields of the dependency are variables
			}
			list, _, _ := unstructured.NestedSlice(o.Object.Object, "spec", in.list)
			for i, item := range list {
				entry, _ := item.(map[string]any)
				if text, _ := entry[in.field].(string); text != "" && !strings.Contains(text, "${") {
					objects, fields = append(objects, o), append(fields, fmt.Sprintf("spec.%s[%d].%s", in.list, i, in.field))
					request.Expressions = append(request.Expressions, expression.Expression{
						Text: text, Environment: in.environment, Boolean: in.environment == expression.Dependency,
					})
				}
			}
		}
	}
	if len(objects) == 0 {
		return nil
	}
	answers, err := c.Expressions.Evaluate(ctx, request)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		if answer.Error != "" {
			message := "not a valid CEL expression: " + answer.Error
			if len(objects[i].Secret) > 0 { // the error contains the expression
				message = "not a valid CEL expression"
			}
			c.add(objects[i], Finding{Severity: Invalid, Rule: RuleExpression, Field: fields[i], Message: message})
		}
	}
	return nil
}
