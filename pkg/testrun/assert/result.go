package assert

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/terminal/output"
)

// Outcome is the result of an assertion.
type Outcome string

// The values of Outcome.
const (
	Passed       Outcome = "passed"
	Failed       Outcome = "failed"
	Undetermined Outcome = "undetermined"
)

// Result is the result of an assertion, or of the actions of a step if they have failed.
type Result struct {
	Test    string  `json:"test"`
	Step    string  `json:"step"`
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Outcome Outcome `json:"outcome"`
	// Expected and Actual describe the expected and the last state, each as a clause. Actual is "" if
	// the assertion has passed.
	Expected string `json:"expected"`
	Actual   string `json:"actual,omitempty"`
	// Since is the time of the last change of the object, zero if unknown.
	Since time.Time `json:"since,omitzero"`
	// Seconds is the time from the start of the step to the result.
	Seconds float64 `json:"seconds"`
}

// seconds returns a duration with one decimal.
func seconds(d time.Duration) float64 { return max(d.Round(100*time.Millisecond).Seconds(), 0) }

// Skip returns results for tests that cannot be run.
func Skip(tests []Test, reason string) []Result {
	var results []Result
	for _, t := range tests {
		for _, s := range t.Steps {
			for _, e := range s.Expect {
				results = append(results, e.result(t, s, evaluation{unknown: reason}))
			}
		}
	}
	return results
}

// String returns the result as one sentence.
func (r Result) String() string {
	text := fmt.Sprintf("%s:%d: %s: %s: expected %s", r.File, r.Line, r.Test, r.Step, r.Expected)
	if r.Actual == "" {
		return text
	}
	text += ", but " + r.Actual
	if !r.Since.IsZero() {
		text += " (since " + r.Since.UTC().Format(time.TimeOnly) + ")"
	}
	return text
}

// String describes what an assertion expects.
func (e *Expectation) String() string {
	switch {
	case e.Exists != nil:
		return e.Exists.String() + " exists"
	case e.Absent != nil:
		return e.Absent.String() + " does not exist"
	case e.Value != nil:
		return e.Value.describe()
	case e.Ready != nil && e.Ready.Reconciliations > 0:
		return fmt.Sprintf("%s is ready within %s", e.Ready.Object, output.Amount(e.Ready.Reconciliations, "reconciliation"))
	case e.Ready != nil:
		return e.Ready.Object.String() + " is ready"
	case e.Pruned != nil:
		return e.Pruned.String() + " is pruned"
	case e.Corrected != nil:
		return "the drift of " + e.Corrected.Object.String() + " is corrected"
	case e.Event != nil:
		return "an event for " + e.Event.Object.String() + optional("of type", e.Event.Type) + optional("with reason", e.Event.Reason) + e.Event.Message.describe("and message")
	case e.Notification != nil:
		return e.Notification.describe()
	case e.Committed != nil:
		return e.Committed.File + " in the repository matches /" + e.Committed.Content.String() + "/"
	case e.Why != nil:
		return e.Why.describe()
	}
	names := make([]string, len(e.Order))
	for i, r := range e.Order {
		names[i] = r.String()
	}
	return "ready in this order: " + strings.Join(names, ", ")
}

func (v *Value) describe() string {
	if v.Equals == nil {
		return fmt.Sprintf("%s of %s is true", v.Expression, v.Object)
	}
	return fmt.Sprintf("%s of %s is %s", v.Expression, v.Object, encoded(*v.Equals))
}

// encoded returns a value as JSON.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

func (n *Notification) describe() string {
	text := "a notification from Provider/" + n.Provider.Namespace + "/" + n.Provider.Name
	if n.Object != nil {
		text += " about " + n.Object.String()
	}
	return text + optional("with reason", n.Reason) + n.Message.describe("and message")
}

func (w *Why) describe() string {
	text := "the root cause of " + w.Object.String()
	if w.RootCause != nil {
		text += " is " + w.RootCause.String()
	}
	return text + w.Message.describe("with message")
}
