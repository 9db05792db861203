package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

const (
	// blameTime is how long the cause of a failure may be looked for, and
	// causesShown how many causes are told of one command.
	blameTime   = 10 * time.Second
	causesShown = 10
)

// unreadyError says that a command has come to no good end with an object of
// Flux. Why that is, blame finds out for all of them together.
type unreadyError struct {
	target  target
	last    controllers.Object
	message string
	// late says that the time was over.
	late bool
	// ways are ways out that the command knows itself.
	ways []string

	// cause is why, nil where nothing was found, and unknown what could not be
	// looked at.
	cause   *diagnose.Case
	unknown []string
}

func (e *unreadyError) Error() string { return e.message }

// unready is the failure of an object whose state the message ends with.
func unready(t target, last controllers.Object, format string, args ...any) *unreadyError {
	message := strings.TrimSpace(fmt.Sprintf(format, args...)) // some end in a line break
	return &unreadyError{target: t, last: last, message: strings.ReplaceAll(message, "\n", "\n  ")}
}

// condition is what an object says of itself. While its controller is at work,
// what it is doing tells more than that it is.
func condition(k controllers.Kind, o controllers.Object) string {
	ready := diagnose.Said(k, o)
	if doing, ok := controllers.FindCondition(o, "Reconciling"); ok && ready.Status == "Unknown" && doing.Status == "True" {
		ready.Message = doing.Message
	}
	if ready.Reason == "" {
		return ready.Message
	}
	return ready.Reason + ": " + ready.Message
}

// failed reports an object that a command cannot go on without, and why it is
// not ready.
func (a *app) failed(ctx context.Context, doctor diagnose.Doctor, e *unreadyError) error {
	if ctx.Err() == nil {
		a.report(e)
	}
	a.blame(ctx, doctor, []*unreadyError{e})
	return errReported
}

// blame finds out why objects are not as they should be and says so below what
// has been reported of them: each cause once, however many have it. It ends
// with the command, not with --timeout.
func (a *app) blame(ctx context.Context, doctor diagnose.Doctor, failed []*unreadyError) {
	if len(failed) == 0 || ctx.Err() != nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, a.blameTime)
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
		ways = append(ways, e.ways...)
		e.unknown = verdict.Unknown
		e.cause = e.caseIn(verdict)
	}
	a.sayCauses(verdict, told, ways)
}

// caseIn finds why an object failed, nil where nothing speaks against it. Where
// only time has run out, more of it is the first way out.
func (e *unreadyError) caseIn(v diagnose.Verdict) *diagnose.Case {
	for i := range v.Cases {
		c := &v.Cases[i]
		if c.Object != e.subject() && !slices.Contains(c.Also, e.subject()) {
			continue
		}
		root := &c.Root
		if e.late && slices.Contains([]string{"", "unreconciled", "progressing"}, root.Code) && !slices.Contains(root.Remedies, moreTime) {
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
func unexplained(v diagnose.Verdict, failed []*unreadyError) []diagnose.Case {
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

func (e *unreadyError) subject() controllers.Target { return e.target.named() }

// sayCauses writes causes below failures that have been told, and ways out that
// the command knows beside those that were found.
func (a *app) sayCauses(v diagnose.Verdict, told, ways []string) {
	p := &page{width: a.ui.Columns(), strong: a.ui.Strong}
	var said []string
	for _, message := range told {
		said = append(said, strings.Join(strings.Fields(message), " "))
	}
	for i, c := range v.Cases[:min(len(v.Cases), causesShown)] {
		if i > 0 {
			ways = nil
		}
		if len(v.Cases) > 1 {
			p.b.WriteString("\n")
		}
		p.cause(c, whose(c, len(told)), strings.Join(said, "\n"), ways)
	}
	if more := len(v.Cases) - causesShown; more > 0 {
		p.section(fmt.Sprintf("And %d more root causes", more), []string{"flux why"})
	}
	p.section("Could not check", v.Unknown)
	a.ui.Print(strings.TrimSuffix(p.b.String(), "\n"))
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
