package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// objectOutcome is what has become of an object that was acted on or waited for.
type objectOutcome struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Revision  string `json:"revision"`
	// Result is what a command that changes objects has done to this one.
	Result string `json:"result,omitempty"`
	// Error is why the command did not come to a good end with the object, ""
	// where it did; Cause is what is behind it, as far as that could be found
	// out, and Unknown what could not be looked at.
	Error   string       `json:"error,omitempty"`
	Cause   *causeReport `json:"cause,omitempty"`
	Unknown []string     `json:"unknown,omitempty"`
}

// causeReport is the root cause of why an object is not ready, and the dependency
// chain from the object to it where they are not the same.
type causeReport struct {
	findingReport
	Chain []objectName `json:"chain,omitempty"`
}

func outcomeOf(t target, o controllers.Object, err error) objectOutcome {
	result := objectOutcome{Kind: t.kind.Kind, Namespace: t.namespace, Name: t.name}
	if o != nil {
		ready := t.kind.Ready(o)
		result.Ready, result.Reason, result.Message = ready.Status == "True", ready.Reason, redact.Text(ready.Message)
		result.Revision = t.kind.Result.String(o)
	}
	if err == nil {
		return result
	}
	message, _ := explain(err, nil)
	var failure *unreadyError
	if errors.As(err, &failure) {
		result.Cause, result.Unknown = failure.report(), failure.unknown
	}
	result.Ready, result.Error = false, redact.Text(message)
	return result
}

// report is the cause as programs read it, nil where none is known.
func (e *unreadyError) report() *causeReport {
	if e.cause == nil {
		return nil
	}
	r := &causeReport{findingReport: findingReportOf(e.cause.Root)}
	if e.cause.Object == e.subject() && len(e.cause.Chain) > 1 {
		for _, f := range e.cause.Chain {
			r.Chain = append(r.Chain, targetName(f.Object))
		}
	}
	return r
}

func addReportFormat(fs *pflag.FlagSet, format *string) {
	fs.StringVarP(format, "output", "o", "", "also print the outcome for each object: json or yaml")
}

func completeReportFormat(cmd *cobra.Command) {
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

func checkReportFormat(format string) error {
	switch format {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("output format %q is not known: use json or yaml", format)
}

// printReport writes the outcomes to standard output, a list also of one.
func (a *app) printReport(format string, outcomes []objectOutcome) error {
	if format == "" {
		return nil
	}
	if outcomes == nil {
		outcomes = []objectOutcome{}
	}
	return a.encode(format, outcomes)
}

// encode writes an answer to standard output as YAML, or else as JSON.
func (a *app) encode(format string, answer any) error {
	text, err := json.MarshalIndent(answer, "", "  ")
	text = append(text, '\n')
	if format == "yaml" {
		text, err = output.YAML(answer)
	}
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	_, err = a.answer(format).Write(text)
	return err
}
