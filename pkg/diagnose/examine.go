package diagnose

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/tree"
)

// eventsShown is how many events of a root are shown.
const eventsShown = 3

// examine asks about the root of a case what only further requests tell: the
// pods that are not ready, the file that is at fault, the last events. What
// cannot be had is left out: the case stands without it. It reports whether the
// failure may be an old one, since nothing has happened to the object for long.
func (s *snapshot) examine(ctx context.Context, c *Case) (unconfirmed bool) {
	root := &c.Root
	o, ofFlux := s.objects[root.Object]
	if !ofFlux {
		c.settle()
		return false
	}
	k := s.kindOf(root.Object)
	sub := s.subject(k, o)
	if said := spoken(sub.ready); sub.ready.Status == "False" && sub.ready.Reason != "" && !strings.Contains(root.Message+"\n"+strings.Join(root.Details, "\n"), oneLine(sub.ready.Message)) {
		root.Details = append(root.Details, said)
	}
	if s.asksPods(sub, root.Code) && s.pods(ctx, root, sub) {
		c.settle() // pods say more than events, which only say that they were waited for
		return false
	}
	*root = s.locate(ctx, *root, sub)
	events, err := Events(ctx, s.Client, root.Object.Kind, root.Object.Namespace, root.Object.Name, eventsShown)
	unconfirmed = err == nil && root.Code != "suspended" && !slices.ContainsFunc(events, func(e Event) bool { return confirms(s.Now, e) })
	message := timeless(oneLine(sub.ready.Message))
	told := timeless(spoken(sub.ready) + "\n" + strings.Join(root.Details, "\n"))
	for _, e := range events {
		text := timeless(e.Text)
		if e.Type == "Warning" && s.evidence(sub, e) && !strings.Contains(told, text) && (message == "" || !strings.Contains(text, message)) {
			root.Details = append(root.Details, fmt.Sprintf("event %s: %s", e.At.UTC().Format("15:04:05"), e.Text))
			told += "\n" + text
		}
	}
	c.settle()
	return unconfirmed
}

// eventEvidence is how old an event may be to explain what is wrong now.
const eventEvidence = time.Hour

// evidence reports whether an event may explain what is wrong now: it is recent,
// and no reconciliation has succeeded since.
func (s *snapshot) evidence(sub subject, e Event) bool {
	if !confirms(s.Now, e) {
		return false
	}
	if sub.kind.Drift != nil { // a rollback is a release that succeeded
		return true
	}
	return !e.At.Before(tree.Link{Kind: sub.kind, Live: sub.object}.Outcome().Good)
}

// spans are durations as Go writes them.
var spans = regexp.MustCompile(`\b[0-9][0-9.]*(ms|µs|s)\b`)

// timeless is a message without the durations in it, in which two of the same
// failure differ.
func timeless(message string) string {
	return spans.ReplaceAllString(message, "")
}

// settle makes the end of the chain what the root has become.
func (c *Case) settle() { c.Chain[len(c.Chain)-1] = c.Root }

// asksPods reports whether what the object has applied may be at fault.
func (s *snapshot) asksPods(sub subject, code string) bool {
	return sub.kind.Manager != "" && slices.Contains([]string{"not-ready", "progressing", "retries-exhausted", "health"}, code)
}

// pods looks for workloads of the object that are not ready, and names the
// first as the cause; false says that there is none. That retries are exhausted
// is what follows from it.
func (s *snapshot) pods(ctx context.Context, root *Finding, sub subject) bool {
	troubles := Workloads(ctx, s.Client, s.workloadsOf(sub))
	if len(troubles) == 0 {
		troubles = s.hooks(ctx, sub)
	}
	if len(troubles) == 0 {
		return false
	}
	young := (Case{Root: *root}).young(s.Now)
	for _, trouble := range troubles[1:] {
		root.Details = append(root.Details, trouble.Name+": "+trouble.Message)
	}
	first := troubles[0]
	if young && first.Vague { // the rollout that is waited for
		root.Details = append(root.Details, first.Name+": "+first.Message)
		return true
	}
	first.Message = first.Name + ": " + first.Message
	f := first.finding(root.Object)
	if root.Code == "retries-exhausted" {
		f.Details = append(f.Details, root.Message)
	}
	again := sub.again()
	if n := len(root.Remedies); n > 0 {
		again = root.Remedies[n-1]
	}
	if f.Remedies == nil {
		f.Remedies = []string{"fix the workload in the source, commit and push"}
	}
	root.Code, root.Message = f.Code, f.Message
	root.Details, root.Remedies = append(f.Details, root.Details...), append(f.Remedies, again)
	return true
}

// workloadsOf are the objects whose pods may be at fault: those that the failure
// names, and those that the object has applied.
func (s *snapshot) workloadsOf(sub subject) []controllers.Target {
	objects := sub.kind.Managed(sub.object)
	for _, h := range failure.Parse(sub.attempt().Message).Objects {
		t := controllers.Target{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}
		if !slices.ContainsFunc(objects, func(o controllers.Target) bool { return key(o) == t }) {
			objects = append(objects, t)
		}
	}
	return objects
}
