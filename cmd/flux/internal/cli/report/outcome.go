package report

import (
	"errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Outcome is the result of a command for an object, for -o json and yaml.
type Outcome struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Revision  string `json:"revision"`
	// Result is the change that the command made to the object.
	Result string `json:"result,omitempty"`
	// Error is the failure, "" for success. Cause is its root cause, if known. Unknown describes
	// failed checks.
	Error   string   `json:"error,omitempty"`
	Cause   *Cause   `json:"cause,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
}

// Cause is the root cause of a failure, with the dependency chain if it is in another object.
type Cause struct {
	Finding
	Chain []controllers.ID `json:"chain,omitempty"`
}

// OutcomeOf returns the outcome of a target. err is its failure or nil.
func OutcomeOf(t objref.Target, o controllers.Object, err error) Outcome {
	result := Outcome{Kind: t.Kind.Kind, Namespace: t.Namespace, Name: t.Name}
	if o != nil {
		ready := t.Kind.Ready(o)
		result.Ready, result.Reason, result.Message = ready.Status == "True", ready.Reason, redact.Text(ready.Message)
		result.Revision = t.Kind.Result.String(o)
	}
	if err == nil {
		return result
	}
	message, _ := clierr.Explain(err, nil)
	var failure *UnreadyError
	if errors.As(err, &failure) {
		result.Cause, result.Unknown = failure.report(), failure.unknown
	}
	result.Ready, result.Error = false, redact.Text(message)
	return result
}

// report returns the root cause for JSON, or nil.
func (e *UnreadyError) report() *Cause {
	if e.cause == nil {
		return nil
	}
	r := &Cause{Finding: findingOf(*e.cause.Root())}
	if e.cause.Object == e.subject() && len(e.cause.Chain) > 1 {
		for _, f := range e.cause.Chain {
			r.Chain = append(r.Chain, f.Object)
		}
	}
	return r
}
