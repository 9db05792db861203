package settle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The statuses of an object.
const (
	Ready    = "ready"
	NotReady = "not-ready"
	// Suspended objects are not reconciled.
	Suspended = "suspended"
	// NotReconciled objects were never reconciled.
	NotReconciled = "not-reconciled"
)

// Uninstalled is the start of the message of a release that was uninstalled as remediation.
const Uninstalled = "uninstalled after a failure"

// Status is the result for a Flux object.
type Status struct {
	Object controllers.ID `json:"object"`
	Status string         `json:"status"`
	// Message is the message of the Ready condition, or the reason why the object is suspended or was uninstalled.
	Message string `json:"message"`
	// Order is the position in which the object became ready, 0 if it is not ready. After is the time
	// from the first object until the object was ready, and Took the time since its creation.
	Order int     `json:"order,omitempty"`
	After float64 `json:"afterSeconds,omitempty"`
	Took  float64 `json:"tookSeconds,omitempty"`
}

// Omission is an object that was not tested.
type Omission struct {
	Object controllers.ID `json:"object"`
	Reason string         `json:"reason"`
	// Intended is set if the run or the repository has suspended the object.
	Intended bool `json:"intended,omitempty"`
}

// Statuses lists the results for Flux objects, in the order in which they became ready. It also returns the objects
// that were intentionally not reconciled or apply to another cluster, and the time until the last object was ready.
func Statuses(flux map[controllers.ID]Flux) (list []Status, omitted []Omission, took float64) {
	var start, last time.Time
	for _, f := range flux {
		if start.IsZero() || f.Seen.Before(start) {
			start = f.Seen
		}
		if f.Since.After(last) {
			last = f.Since
		}
	}
	omitted = []Omission{}
	for t, f := range flux {
		s := Status{Object: t, Status: Ready, Message: redact.Text(f.Failure())}
		suspended := f.Suspended()
		switch {
		case suspended != nil:
			s.Status, s.Message = Suspended, suspended.Reason
			if suspended.Reason == "" {
				continue
			}
			omitted = append(omitted, Omission{s.Object, suspended.Reason, suspended.Intended})
		case !f.Kind.HasConditions():
			continue
		case f.Kind.IsReady(f.Object):
			s.After, s.Took = Seconds(f.Since.Sub(start)), Seconds(f.Since.Sub(f.Seen))
		case f.Kind.Pending(f.Object) || f.Kind.Ready(f.Object).Reason == "":
			s.Status = NotReconciled
		default:
			s.Status = NotReady
		}
		if s.Status == NotReady && controllers.Uninstalled(f.Object) {
			s.Message = Uninstalled + ": " + s.Message
		}
		list = append(list, s)
	}
	statuses := []string{Ready, NotReady, NotReconciled, Suspended}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(slices.Index(statuses, a.Status), slices.Index(statuses, b.Status)),
			cmp.Compare(a.After, b.After), strings.Compare(a.Object.String(), b.Object.String()))
	})
	for i := range list {
		if list[i].Status == Ready {
			list[i].Order = i + 1
		}
	}
	slices.SortFunc(omitted, func(a, b Omission) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	return list, omitted, Seconds(max(last.Sub(start), 0))
}

// Seconds returns a duration with one decimal.
func Seconds(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }
