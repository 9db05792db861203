package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// causesShown is how many root causes of one command are reported.
const causesShown = 10

// UnreadyError says that a command has come to no good end with an object of
// Flux. Why that is, PrintRootCauses finds out for all of them together.
type UnreadyError struct {
	target  objref.Target
	last    controllers.Object
	message string
	// Late says that the time was over.
	Late bool
	// Remedies are ways out that the command knows itself.
	Remedies []string

	// cause is why, nil where nothing was found, and unknown what could not be
	// looked at.
	cause   *diagnose.Case
	unknown []string
}

func (e *UnreadyError) Error() string { return e.message }

// Unready is the failure of an object whose state the message ends with.
func Unready(t objref.Target, last controllers.Object, format string, args ...any) *UnreadyError {
	message := strings.TrimSpace(fmt.Sprintf(format, args...)) // some end in a line break
	return &UnreadyError{target: t, last: last, message: strings.ReplaceAll(message, "\n", "\n  ")}
}

// Condition is what an object says of itself. While its controller is at work,
// what it is doing tells more than that it is.
func Condition(k controllers.Kind, o controllers.Object) string {
	ready := diagnose.Said(k, o)
	if doing, ok := controllers.FindCondition(o, "Reconciling"); ok && ready.Status == "Unknown" && doing.Status == "True" {
		ready.Message = doing.Message
	}
	if ready.Reason == "" {
		return ready.Message
	}
	return ready.Reason + ": " + ready.Message
}

// Fail reports an object that a command cannot go on without, and why it is
// not ready.
func Fail(ctx context.Context, a *app.App, doctor diagnose.Doctor, e *UnreadyError) error {
	if ctx.Err() == nil {
		a.Report(e)
	}
	PrintRootCauses(ctx, a, doctor, []*UnreadyError{e})
	return clierr.ErrReported
}

// PrintRootCauses finds out why objects are not as they should be and says so below what
// has been reported of them: each cause once, however many have it. It ends
// with the command, not with --timeout.
func PrintRootCauses(ctx context.Context, a *app.App, doctor diagnose.Doctor, failed []*UnreadyError) {
	if len(failed) == 0 || ctx.Err() != nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, a.DiagnosisTimeout)
	defer cancel()
	var subjects []diagnose.Failed
	for _, e := range failed {
		subjects = append(subjects, diagnose.Failed{Target: e.subject(), Last: e.last})
	}
	verdict := doctor.Failed(within, subjects)
	if ctx.Err() != nil {
		return
	}
	verdict.Cases = append(verdict.Cases, unexplained(verdict, failed)...)
	var told, ways []string
	for _, e := range failed {
		told = append(told, e.message)
		ways = append(ways, e.Remedies...)
		e.unknown = verdict.Unknown
		e.cause = e.caseIn(verdict)
	}
	PrintCauses(a, verdict, told, ways)
}

// caseIn finds why an object failed, nil where nothing speaks against it. Where
// only time has run out, more of it is the first way out.
func (e *UnreadyError) caseIn(v diagnose.Verdict) *diagnose.Case {
	for i := range v.Cases {
		c := &v.Cases[i]
		if c.Object != e.subject() && !slices.Contains(c.Also, e.subject()) {
			continue
		}
		root := &c.Root
		if e.Late && slices.Contains([]string{"", "unreconciled", "progressing"}, root.Code) && !slices.Contains(root.Remedies, moreTime) {
			root.Remedies = append([]string{moreTime}, root.Remedies...)
		}
		if root.Code == "" {
			return nil
		}
		return c
	}
	return nil
}

const moreTime = "increase --timeout"

// unexplained makes what nothing was found against a case without a cause.
func unexplained(v diagnose.Verdict, failed []*UnreadyError) []diagnose.Case {
	var c diagnose.Case
	for _, e := range failed {
		_, found := v.Of(e.subject())
		switch {
		case found:
		case c.Object.Name == "":
			c.Object, c.Root.Object = e.subject(), e.subject()
			c.Root.Remedies = []string{diagnose.LogsOf(e.subject())}
		default:
			c.Also = append(c.Also, e.subject())
		}
	}
	if c.Object.Name == "" {
		return nil
	}
	return []diagnose.Case{c}
}

func (e *UnreadyError) subject() controllers.Target { return e.target.Named() }

// PrintCauses writes causes below failures that have been told, and ways out that
// the command knows beside those that were found.
func PrintCauses(a *app.App, v diagnose.Verdict, told, ways []string) {
	p := &Page{width: a.UI.Columns(), Strong: a.UI.Strong}
	var said []string
	for _, message := range told {
		said = append(said, strings.Join(strings.Fields(message), " "))
	}
	for i, c := range v.Cases[:min(len(v.Cases), causesShown)] {
		if i > 0 {
			ways = nil
		}
		if len(v.Cases) > 1 {
			p.B.WriteString("\n")
		}
		p.Cause(c, whose(c, len(told)), strings.Join(said, "\n"), ways)
	}
	if more := len(v.Cases) - causesShown; more > 0 {
		p.Section(fmt.Sprintf("And %d more root causes", more), []string{"flux why"})
	}
	p.Section("Could not check", v.Unknown)
	a.UI.Print(strings.TrimSuffix(p.B.String(), "\n"))
}

// whose says for which of the objects that have failed a case is, "" where
// there is only one.
func whose(c diagnose.Case, failed int) string {
	explained := append([]controllers.Target{c.Object}, c.Also...)
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

// TimedOut is the message of a wait that --timeout has ended.
func TimedOut(a *app.App, t controllers.Target, become, state string) string {
	return fmt.Sprintf("timed out after %s waiting for %s to %s: %s", brief(a.Global.Timeout), t, become, state)
}

// brief is a duration without units of which there are none.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Doctor returns what diagnoses objects of the cluster.
func Doctor(a *app.App, client *kube.Client) diagnose.Doctor {
	d := diagnose.Doctor{Client: client, Home: a.FluxNamespace(), Now: a.Now()}
	d.Kustomizer, _ = a.Kustomizer(app.RemoteBases{}) // only a host can be wrong
	return d
}
