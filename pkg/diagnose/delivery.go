package diagnose

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// dispatchFailed is the reason of the event that notification-controller
	// creates for an Alert if it cannot send a notification.
	dispatchFailed = "NotificationDispatchFailed"
	// deliveryEvidence is the maximum age of such an event. Successful
	// notifications do not create events.
	deliveryEvidence = time.Hour
	// sendersRead is the maximum number of objects with such events to read.
	sendersRead = 20
)

// deliveries finds failed notifications. It lists their events, and reads the
// objects that send them.
type deliveries struct {
	Doctor
	*snapshot
	history *history
}

// provider returns the Provider of an object that sends notifications.
func provider(k controllers.Kind, o controllers.Object) (controllers.ID, bool) {
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

// delivers reports whether an object sends notifications or is a Provider.
func (s *deliveries) delivers(t controllers.ID) bool {
	if _, sends := provider(kindOf(t), s.objects[t]); sends {
		return true
	}
	return slices.ContainsFunc(controllers.Kinds, func(k controllers.Kind) bool {
		return slices.ContainsFunc(k.Refs, func(r controllers.Ref) bool { return r.Relation == "provider" && slices.Contains(r.Kinds, t.Kind) })
	})
}

// unprovided returns the finding for an object whose Provider does not exist.
func (s *judge) unprovided(t controllers.ID) *Finding {
	through, sends := provider(kindOf(t), s.objects[t])
	if !sends || s.objects[through] != nil || s.hidden(through) != nil {
		return nil
	}
	return &Finding{Object: t, Code: "waiting", Message: "no notification is sent: its Provider does not exist"}
}

// undelivered adds the cases of failed notifications that an object sends or
// that a Provider delivers.
func (s *deliveries) undelivered(ctx context.Context, v *Verdict, t controllers.ID) {
	s.addUndelivered(ctx, v, t.Namespace, func(sender, through controllers.ID) bool { return sender == t || through == t })
}

// undeliveredEverywhere adds the cases of all failed notifications in a
// namespace, or in all namespaces for "".
func (s *deliveries) undeliveredEverywhere(ctx context.Context, v *Verdict, namespace string) {
	for t, o := range s.objects {
		if _, sends := provider(kindOf(t), o); sends {
			own := len(v.Cases)
			s.addUndelivered(ctx, v, namespace, func(_, _ controllers.ID) bool { return true })
			v.RootCauses, v.Problems = v.RootCauses+len(v.Cases)-own, v.Problems+len(v.Cases)-own
			return
		}
	}
}

func (s *deliveries) addUndelivered(ctx context.Context, v *Verdict, namespace string, wanted func(sender, through controllers.ID) bool) {
	failures, err := s.history.dispatchFailures(ctx, namespace)
	if err != nil {
		v.Unknown = append(v.Unknown, unseen(err)+": events of notifications")
		return
	}
	byName := func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) }
	read := 0
	for _, sender := range slices.SortedFunc(maps.Keys(failures), byName) {
		if s.Now.Sub(failures[sender].at) > deliveryEvidence {
			continue
		}
		if read++; read > sendersRead {
			v.Unknown = append(v.Unknown, fmt.Sprintf("more than %d objects whose notifications failed", sendersRead))
			return
		}
		o, err := s.readOwner(ctx, sender)
		if err != nil {
			v.Unknown = append(v.Unknown, unseen(err)+": "+sender.String()+", whose notifications failed")
			continue
		}
		through, sends := provider(kindOf(sender), o)
		if !sends || !wanted(sender, through) {
			continue
		}
		p, err := s.readOwner(ctx, through)
		if err != nil {
			v.Unknown = append(v.Unknown, unseen(err)+": "+through.String()+", through which notifications failed")
			continue
		}
		if f, ok := s.undeliveredOf(ctx, sender, o, through, p, failures[sender]); ok && v.caseOf(f) < 0 {
			v.Cases = append(v.Cases, deliveryCase(sender, f))
		}
	}
}

// undeliveredOf returns the finding for the last failed notification of an
// object. A failure before the last change of the Alert, the Provider or its
// Secret is not reported.
func (s *deliveries) undeliveredOf(ctx context.Context, t controllers.ID, o controllers.Object, through controllers.ID, p controllers.Object, last dispatchFailure) (Finding, bool) {
	if p == nil || kindOf(t).Suspension.Is(o) || kindOf(through).Suspension.Is(p) {
		return Finding{}, false
	}
	secret := controllers.ID{Kind: "Secret", Namespace: through.Namespace, Name: controllers.Path{"spec.secretRef.name"}.String(p)}
	edit := "check spec.address, and the network from the cluster to it"
	changed := []time.Time{specChanged(o), specChanged(p)}
	if secret.Name != "" {
		edit = fmt.Sprintf("check spec.address or the address and token in %s, and the network from the cluster", secret)
		if held, err := metadataOf(ctx, s.Client, resource(corev1.SchemeGroupVersion, "Secret"), secret); err == nil {
			changed = append(changed, specChanged(held))
		}
	}
	if slices.ContainsFunc(changed, last.at.Before) {
		return Finding{}, false
	}
	return Finding{
		Object: through, Code: "notification-failed", Since: last.at, Remedies: []string{edit, LogsOf(t)},
		Message: fmt.Sprintf("the last notification of %s was not delivered: %s", t, withoutPaths(last.message)),
		Details: []string{fmt.Sprintf("event %s: %s", last.at.UTC().Format(time.RFC3339), dispatchFailed)},
	}, true
}

// deliveryCase returns the case with the chain from the sending object to the
// Provider.
func deliveryCase(sender controllers.ID, f Finding) Case {
	through := Finding{Object: sender, Code: "waiting", Message: "its notifications are sent through " + f.Object.String()}
	return Case{Object: sender, Root: f, Chain: []Finding{through, f}}
}

// addressPath matches the path of a URL, which is a secret for many services.
var addressPath = regexp.MustCompile(`(https?://)(?:[^\s"'/@]*@)?([^\s"'/?#]+)[/?#][^\s"']*`)

// withoutPaths returns an error of a notification without the redundant object
// name and without the paths of URLs.
func withoutPaths(message string) string {
	if _, rest, ok := strings.Cut(message, ": "); ok && strings.HasPrefix(message, "failed to ") {
		message = rest
	}
	return oneLine(addressPath.ReplaceAllString(message, "$1$2/…"))
}
