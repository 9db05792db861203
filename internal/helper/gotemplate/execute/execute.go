// Package execute executes Go templates as kubectl does.
package execute

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/helper/gotemplate"
)

// Job is [gotemplate.Job].
const Job = gotemplate.Job

// Execute is the handler of Job. A missing key is printed as "<no value>".
func Execute(_ context.Context, in gotemplate.Input) (string, error) {
	printer, err := printers.NewGoTemplatePrinter([]byte(in.Template))
	if err != nil {
		return "", err
	}
	printer.AllowMissingKeys(true)
	var text strings.Builder
	exceeded := &budget.ExceededError{Fact: "the template output is larger than " + budget.Size(budget.HelperOutput)}
	if err := printer.PrintObj(&runtime.Unknown{Raw: in.Object}, budget.Writer(&text, budget.HelperOutput, exceeded)); err != nil {
		return "", fmt.Errorf("-o go-template: %w", err)
	}
	return text.String(), nil
}
