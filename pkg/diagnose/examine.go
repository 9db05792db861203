package diagnose

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/tree"
)

// eventsShown is the number of events to print for a root cause.
const eventsShown = 3

// examiner adds details to root causes. It lists events and pods, reads logs, and
// fetches artifacts. Several root causes are examined in parallel.
type examiner struct {
	*judge
	workloads *workloads
	contents  *contents
}

// examine adds details to the root of a case that need further requests: pods
// that are not ready, the file in the source, recent events. Errors are
// ignored: the case is valid without them. It reports whether the failure may
// be outdated because the object has no recent events.
func (s *examiner) examine(ctx context.Context, c *Case) (unconfirmed bool) {
	root := &c.Root
	o, ofFlux := s.objects[root.Object]
	if !ofFlux {
		c.settle()
		return false
	}
	k := kindOf(root.Object)
	sub := s.subject(k, o)
	if said := spoken(sub.ready); sub.ready.Status == "False" && sub.ready.Reason != "" && !strings.Contains(root.Message+"\n"+strings.Join(root.Details, "\n"), oneLine(sub.ready.Message)) {
		root.Details = append(root.Details, said)
	}
	if sub.attempting != "" {
		root.Details = append(root.Details, "the attempt is being repeated: "+oneLine(sub.attempting))
	}
	if asksPods(sub, root.Code) && s.pods(ctx, root, sub) {
		c.settle() // events only report the timeout
		return false
	}
	if s.panics(ctx, root, sub) {
		c.settle()
		return false
	}
	*root = s.contents.locate(ctx, *root, sub)
	events, err := s.workloads.history.of(ctx, root.Object)
	events = latest(events, eventsShown)
	unconfirmed = err == nil && root.Code != "suspended" && !slices.ContainsFunc(events, func(e event.Event) bool { return confirms(s.Now, e) })
	message := timeless(oneLine(sub.ready.Message))
	told := timeless(spoken(sub.ready) + "\n" + strings.Join(root.Details, "\n"))
	for _, e := range events {
		text := timeless(textOf(e))
		if e.Type == "Warning" && s.evidence(sub, e) && !strings.Contains(told, text) && (message == "" || !strings.Contains(text, message)) {
			root.Details = append(root.Details, fmt.Sprintf("event %s: %s", e.At.UTC().Format("15:04:05"), textOf(e)))
			told += "\n" + text
		}
	}
	c.settle()
	return unconfirmed
}

// eventEvidence is the maximum age of an event that explains the current
// failure.
const eventEvidence = time.Hour

// canceled ends the message of a controller about a request that it has canceled itself, because a
// newer request replaces the reconciliation.
const canceled = "context canceled"

// evidence reports whether an event may explain the current failure: it is
// recent and newer than the last successful reconciliation.
func (s *examiner) evidence(sub subject, e event.Event) bool {
	if !confirms(s.Now, e) || strings.HasSuffix(textOf(e), canceled) {
		return false
	}
	if sub.kind.Release { // a rollback also updates the last success
		return true
	}
	return !e.At.Before(tree.Link{Kind: sub.kind, Live: sub.object}.Outcome().LastSuccess)
}

// spans matches durations.
var spans = regexp.MustCompile(`\b[0-9][0-9.]*(ms|µs|s)\b`)

// timeless removes durations from a message, so that equal failures compare
// equal.
func timeless(message string) string {
	return spans.ReplaceAllString(message, "")
}

// settle copies the root to the end of the chain.
func (c *Case) settle() { c.Chain[len(c.Chain)-1] = c.Root }

// asksPods reports whether the applied workloads may be the cause.
func asksPods(sub subject, code string) bool {
	return sub.kind.Manager != "" && slices.Contains([]string{"not-ready", "progressing", "retries-exhausted", "health"}, code)
}

// pods reports whether workloads of the object are not ready, and makes the
// first the root cause. Exhausted retries are a consequence and become a
// detail.
func (s *examiner) pods(ctx context.Context, root *Finding, sub subject) bool {
	troubles, _ := s.workloads.troubles(ctx, workloadsOf(sub))
	if len(troubles) == 0 {
		troubles = s.workloads.hooks(ctx, sub)
	}
	if len(troubles) == 0 {
		return false
	}
	young := (Case{Root: *root}).young(s.Now)
	for _, trouble := range troubles[1:] {
		root.Details = append(root.Details, trouble.Name+": "+trouble.Message)
	}
	first := troubles[0]
	if young && first.Vague { // the rollout is in progress
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

// workloadsOf returns the objects whose pods may be the cause: the inventory
// and the objects that the failure names.
func workloadsOf(sub subject) []controllers.ID {
	objects := controllers.Managed(sub.object)
	for _, h := range failure.Parse(sub.attempt().Message).Objects {
		// Messages have no groups.
		group, ok := workloadGroups[h.Kind]
		if t := (controllers.ID{Group: group, Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}); ok && !slices.Contains(objects, t) {
			objects = append(objects, t)
		}
	}
	return objects
}
