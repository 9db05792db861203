package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// causesShown is the maximum number of root causes that a command prints.
const causesShown = 10

// UnreadyError is the failure of a command for a Flux object that is not ready.
// PrintRootCauses determines the root causes of all failures together.
type UnreadyError struct {
	target  objref.Target
	last    controllers.Object
	message string
	// Late is set if the time limit was exceeded.
	Late bool
	// Remedies are the fixes that the command suggests.
	Remedies []string

	// cause is the root cause, nil if none was found. unknown describes the checks
	// that failed.
	cause   *diagnose.Cause
	unknown []string
}

func (e *UnreadyError) Error() string { return e.message }

// Unready returns the failure of an object. The message ends with its state.
func Unready(t objref.Target, last controllers.Object, format string, args ...any) *UnreadyError {
	message := strings.TrimSpace(fmt.Sprintf(format, args...)) // condition messages may end with a line break
	return &UnreadyError{target: t, last: last, message: strings.ReplaceAll(message, "\n", "\n  ")}
}

// Condition returns the reason and message of the Ready condition, with the
// message of the Reconciling condition during a reconciliation.
func Condition(k controllers.Kind, o controllers.Object) string {
	ready := rules.Readiness(k, o)
	if doing, ok := controllers.FindCondition(o, "Reconciling"); ok && ready.Status == "Unknown" && doing.Status == "True" {
		ready.Message = doing.Message
	}
	if ready.Reason == "" {
		return ready.Message
	}
	return ready.Reason + ": " + ready.Message
}

// Fail reports a failure that ends the command, with its root cause.
func Fail(ctx context.Context, a *app.App, doctor diagnose.Diagnoser, e *UnreadyError) error {
	if ctx.Err() == nil {
		a.Report(e)
	}
	PrintRootCauses(ctx, a, doctor, []*UnreadyError{e})
	return clierr.ErrReported
}

// PrintRootCauses diagnoses reported failures and prints each root cause once. ctx is the context
// of the command: the diagnosis has a separate time limit.
func PrintRootCauses(ctx context.Context, a *app.App, doctor diagnose.Diagnoser, failed []*UnreadyError) {
	if len(failed) == 0 || ctx.Err() != nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, a.DiagnosisTimeout)
	defer cancel()
	var subjects []diagnose.Failed
	for _, e := range failed {
		subjects = append(subjects, diagnose.Failed{ID: e.subject(), Last: e.last})
	}
	verdict := doctor.Failed(within, subjects)
	if ctx.Err() != nil {
		return
	}
	verdict.Causes = append(verdict.Causes, unexplained(verdict, failed)...)
	var reported, remedies []string
	for _, e := range failed {
		reported = append(reported, e.message)
		remedies = append(remedies, e.Remedies...)
		e.unknown = verdict.Unknown
		e.cause = e.causeIn(verdict)
	}
	PrintCauses(a, verdict, reported, remedies)
}

// causeIn returns the root cause of the object, or nil. If only the timeout was exceeded, the first
// remedy is to increase it.
func (e *UnreadyError) causeIn(v diagnose.Result) *diagnose.Cause {
	for i := range v.Causes {
		c := &v.Causes[i]
		if c.Object != e.subject() && !slices.Contains(c.Also, e.subject()) {
			continue
		}
		root := c.Root()
		if e.Late && slices.Contains([]string{"", "unreconciled", "progressing"}, root.Code) && !slices.Contains(root.Fixes, moreTime) {
			root.Fixes = append([]string{moreTime}, root.Fixes...)
		}
		if root.Code == "" {
			return nil
		}
		return c
	}
	return nil
}

const moreTime = "increase --timeout"

// unexplained returns one cause without a message for all failures without a diagnosis.
func unexplained(v diagnose.Result, failed []*UnreadyError) []diagnose.Cause {
	var c diagnose.Cause
	for _, e := range failed {
		_, found := v.Of(e.subject())
		switch {
		case found:
		case c.Object.Name == "":
			c.Object = e.subject()
			c.Chain = []rules.Finding{{Object: c.Object, Fixes: []string{rules.Logs(c.Object)}}}
		default:
			c.Also = append(c.Also, e.subject())
		}
	}
	if c.Object.Name == "" {
		return nil
	}
	return []diagnose.Cause{c}
}

func (e *UnreadyError) subject() controllers.ID { return e.target.Named() }

// PrintCauses prints root causes below the messages of reported failures. The
// given remedies come first.
func PrintCauses(a *app.App, v diagnose.Result, reported, remedies []string) {
	p := &Page{width: a.UI.Columns(), Strong: a.UI.Strong}
	var lines []string
	for _, message := range reported {
		lines = append(lines, strings.Join(strings.Fields(message), " "))
	}
	for i, c := range v.Causes[:min(len(v.Causes), causesShown)] {
		if i > 0 {
			remedies = nil
		}
		if len(v.Causes) > 1 {
			p.B.WriteString("\n")
		}
		p.Cause(c, whose(c, len(reported)), strings.Join(lines, "\n"), remedies)
	}
	if more := len(v.Causes) - causesShown; more > 0 {
		p.Section(fmt.Sprintf("And %d more root causes", more), []string{"flux why"})
	}
	p.Section("Could not check", v.Unknown)
	a.UI.Print(strings.TrimSuffix(p.B.String(), "\n"))
}

// whose lists the failed objects of a cause, "" if only one object has failed.
func whose(c diagnose.Cause, failed int) string {
	explained := append([]controllers.ID{c.Object}, c.Also...)
	switch {
	case failed == 1:
		return ""
	case failed == len(explained) && failed == 2:
		return " both"
	case failed == len(explained):
		return fmt.Sprintf(" all %d", failed)
	default:
		return " " + strings.Join(listed(explained), ", ")
	}
}

// TimedOut returns the message for a wait that has exceeded its time limit.
func TimedOut(timeout time.Duration, t controllers.ID, become, state string) string {
	return fmt.Sprintf("%s waiting for %s to %s: %s", &clierr.TimeoutError{After: timeout}, t, become, state)
}

// Diagnoser returns the Diagnoser for the cluster.
func Diagnoser(a *app.App, client *kube.Client) diagnose.Diagnoser {
	return diagnose.Diagnoser{
		Client: client, Home: a.FluxNamespace(), Now: a.Now(), Recording: a.Global.Kube.FromRecording(),
		Kustomizer: isolated.NewKustomizer(a.Helpers, nil),
	}
}
