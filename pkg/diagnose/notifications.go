package diagnose

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/event"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/diff/managedfields"
)

const (
	// dispatchFailed is the reason of the event that notification-controller creates for an Alert if it cannot send a notification.
	dispatchFailed = "NotificationDispatchFailed"
	// recentDispatch is the maximum age of such an event. Successful notifications do not create events.
	recentDispatch = time.Hour
	// sendersRead is the maximum number of objects with such events to read.
	sendersRead = 20
)

// providerOf returns the Provider of an object that sends notifications.
func providerOf(k controllers.Kind, o controllers.Object) (controllers.ID, bool) {
	for _, r := range k.Refs {
		if r.Relation != "provider" {
			continue
		}
		for _, target := range r.Targets(o) {
			return target, true
		}
	}
	return controllers.ID{}, false
}

// isProvider reports whether a kind sends the notifications of other objects.
func isProvider(kind string) bool {
	return slices.ContainsFunc(controllers.Known, func(k controllers.Kind) bool {
		return slices.ContainsFunc(k.Refs, func(r controllers.Ref) bool { return r.Relation == "provider" && slices.Contains(r.Kinds, kind) })
	})
}

// addUndelivered adds the failed notifications that an object sends or that a Provider delivers.
func (s *diagnosis) addUndelivered(ctx context.Context, r *Result, t controllers.ID) {
	if _, sends := providerOf(observe.KindOf(t), s.snapshot.Objects[t]); sends || isProvider(t.Kind) {
		s.addUndeliveredOf(ctx, r, t.Namespace, func(sender, provider controllers.ID) bool { return sender == t || provider == t })
	}
}

// addUndeliveredOfAll adds the failed notifications of all senders in a scope.
func (s *diagnosis) addUndeliveredOfAll(ctx context.Context, r *Result, scope Scope) {
	for t, o := range s.snapshot.Objects {
		if _, sends := providerOf(observe.KindOf(t), o); sends {
			own := len(r.Causes)
			s.addUndeliveredOf(ctx, r, scope.Namespace, func(sender, _ controllers.ID) bool {
				return !scope.narrow() || scope.selects(sender, s.snapshot.Objects[sender])
			})
			r.RootCauses, r.Problems = r.RootCauses+len(r.Causes)-own, r.Problems+len(r.Causes)-own
			return
		}
	}
}

// addUndeliveredOf adds the failed notifications in a namespace for which wanted returns true.
func (s *diagnosis) addUndeliveredOf(ctx context.Context, r *Result, namespace string, wanted func(sender, provider controllers.ID) bool) {
	failures, err := s.cluster.NewestEvents(ctx, namespace, "reason="+dispatchFailed)
	if err != nil {
		r.Unknown = append(r.Unknown, observe.Unread("events of notifications", err))
		return
	}
	read := 0
	for _, sender := range observe.Sorted(maps.Keys(failures)) {
		if s.config.Now.Sub(failures[sender].At) > recentDispatch {
			continue
		}
		if read++; read > sendersRead {
			r.Unknown = append(r.Unknown, fmt.Sprintf("more than %d objects with failed notifications", sendersRead))
			return
		}
		o, err := s.cluster.Flux(ctx, sender)
		if err != nil {
			r.Unknown = append(r.Unknown, observe.Unread(sender.String()+", whose notifications failed", err))
			continue
		}
		provider, sends := providerOf(observe.KindOf(sender), o)
		if !sends || !wanted(sender, provider) {
			continue
		}
		p, err := s.cluster.Flux(ctx, provider)
		if err != nil {
			r.Unknown = append(r.Unknown, observe.Unread(provider.String()+", the Provider of failed notifications", err))
			continue
		}
		n := notification{sender: sender, alert: o, provider: provider, through: p, failure: failures[sender]}
		if f, ok := n.undelivered(ctx, s.cluster); ok && r.with(f) == nil {
			sent := rules.Finding{Object: sender, Code: "waiting", Message: "its notifications are sent through " + provider.String()}
			r.Causes = append(r.Causes, causeOf(sender, sent, f))
		}
	}
}

// notification is the last failed notification of an object.
type notification struct {
	sender, provider controllers.ID
	// alert is the sender. through is the Provider, or nil if it does not exist.
	alert, through controllers.Object
	failure        event.Event
}

// undelivered returns the finding for a failed notification. A failure before the last change of the Alert, the Provider or its
// Secret is not reported.
func (n notification) undelivered(ctx context.Context, c *observe.Cluster) (rules.Finding, bool) {
	if n.through == nil || observe.KindOf(n.sender).Suspension.Is(n.alert) || observe.KindOf(n.provider).Suspension.Is(n.through) {
		return rules.Finding{}, false
	}
	secret := controllers.ID{Kind: "Secret", Namespace: n.provider.Namespace, Name: controllers.Path{"spec.secretRef.name"}.String(n.through)}
	fix := "check .spec.address, and that the cluster can reach it"
	changed := []time.Time{managedfields.Changed(n.alert), managedfields.Changed(n.through)}
	if secret.Name != "" {
		fix = fmt.Sprintf("check .spec.address, or the address and token in %s, and that the cluster can reach the address", secret)
		if o, err := c.Metadata(ctx, kube.BuiltIn("v1", "Secret"), secret); err == nil {
			changed = append(changed, managedfields.Changed(o))
		}
	}
	if f := failure.Parse(n.failure.Message); f.Type == failure.NotFound && f.Named.Kind == "Secret" {
		fix = hint.Command("create "+secret.String()+": kubectl -n %s create secret generic %s --from-file=<key>=<file>", secret.Namespace, secret.Name)
	}
	if slices.ContainsFunc(changed, n.failure.At.Before) {
		return rules.Finding{}, false
	}
	return rules.Finding{
		Object: n.provider, Code: "notification-failed", Since: n.failure.At, Fixes: []string{fix, rules.Logs(n.sender)},
		Message: fmt.Sprintf("the last notification of %s was not delivered: %s", n.sender, withoutPaths(n.failure.Message)),
		Details: []string{fmt.Sprintf("event %s: %s", n.failure.At.UTC().Format(time.RFC3339), dispatchFailed)},
	}, true
}

// addressPath matches the path of a URL, which is a secret for many services.
var addressPath = lazy.Regexp(`(https?://)(?:[^\s"'/@]*@)?([^\s"'/?#]+)[/?#][^\s"']*`)

// withoutPaths returns an error of a notification without the redundant object name and without the paths of URLs.
func withoutPaths(message string) string {
	if _, rest, ok := strings.Cut(message, ": "); ok && strings.HasPrefix(message, "failed to ") {
		message = rest
	}
	return failure.OneLine(addressPath().ReplaceAllString(message, "$1$2/…"))
}
