// Package diagnose determines why objects are not ready and how to fix them.
//
// The commands why and status, commands that wait for objects, and flux test use a [Diagnoser]. A diagnosis has these steps:
//
//   - read: package observe reads the objects with their dependencies; installation reads the controllers
//   - evaluate: package rules turns the status of each object into a finding, and evaluation follows waiting objects to their
//     root cause, without requests
//   - examine: details of root causes are read in parallel: pods from package rollout, panics of controllers, the file in the
//     source, events
//   - list the objects that wait for a root cause
//   - check what a ready object does not report: package inventory checks the applied objects, and events report notifications
//     that were not delivered
//   - conclude: recent progress is not a problem yet, and unread objects are reported if they could change the result
package diagnose

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Diagnoser diagnoses Flux objects. It is read-only.
type Diagnoser struct {
	Client *kube.Client
	// Home is the namespace of the controllers.
	Home string
	Now  time.Time
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
	// Recording is true if the cluster is a recording, which has an index of some artifacts instead of their files.
	Recording bool
}

// Scope limits the objects that Everything diagnoses and the number of root causes.
type Scope struct {
	// Namespace is "" for all namespaces.
	Namespace string
	// Fallback is the namespace to read if objects may not be listed in all namespaces, or "".
	Fallback string
	// Causes is the maximum number of root causes to examine and return, sorted by the number of blocked objects. 0 means no
	// limit.
	Causes int
	// Kinds and Labels select the objects to diagnose. Without them, all objects and the controllers are diagnosed.
	Kinds  []controllers.Kind
	Labels labels.Selector
}

func (s Scope) contains(namespace string) bool { return s.Namespace == "" || s.Namespace == namespace }

// narrow reports whether only some objects are diagnosed.
func (s Scope) narrow() bool { return len(s.Kinds) > 0 || s.Labels != nil }

// selects reports whether an object is diagnosed.
func (s Scope) selects(t controllers.ID, o controllers.Object) bool {
	isKind := len(s.Kinds) == 0 || slices.ContainsFunc(s.Kinds, func(k controllers.Kind) bool { return k.Kind == t.Kind })
	return isKind && s.contains(t.Namespace) && (s.Labels == nil || s.Labels.Matches(labelsOf(o)))
}

// Everything diagnoses all Flux objects in a scope and the controllers. Objects with the same root cause share one Cause.
func (d Diagnoser) Everything(ctx context.Context, scope Scope) (Result, error) {
	s, err := d.survey(ctx, scope.Namespace, scope.Fallback, apierrors.IsForbidden)
	if err != nil {
		return Result{}, err
	}
	r := s.evaluation.everything(scope)
	r.limit(scope.Causes, d.Now)
	r.Unknown = s.evaluation.unknownOfAll(scope)
	r.Uninstalled = s.installation.unread == s.installation.empty()
	s.examineAll(ctx, r.Causes)
	s.addUndeliveredOfAll(ctx, &r, scope)
	r.separate(0, d.Now)
	return r, nil
}

// Object diagnoses one Flux object. It returns a NotFound error if the object does not exist.
func (d Diagnoser) Object(ctx context.Context, k controllers.Kind, namespace, name string) (Result, error) {
	t := k.ID(namespace, name)
	s, err := d.inspect(ctx, []controllers.ID{t}, nil, apierrors.IsForbidden)
	if err != nil {
		return Result{}, err
	}
	if link := s.snapshot.Link(t); link.Err != nil {
		return Result{}, link.Err
	}
	r := Result{Checked: 1}
	if s.diagnose(ctx, &r, t) {
		if !k.Suspension.Is(s.snapshot.Objects[t]) {
			s.addUndelivered(ctx, &r, t)
		}
		checked := s.inventories().Check(ctx, s.evaluation.subject(t))
		r.Unknown = append(r.Unknown, checked.Unknown...)
		for _, p := range checked.Problems {
			r.Causes = append(r.Causes, incomplete(t, p))
		}
	}
	return s.conclude(r), nil
}

// diagnose adds the root causes of an object and of its sources that cannot fetch new revisions. It reports whether the object is
// ready.
func (s *diagnosis) diagnose(ctx context.Context, r *Result, t controllers.ID) (ready bool) {
	own := len(r.Causes)
	evaluate := func() {
		r.Causes = r.Causes[:own]
		ready = s.evaluation.add(r, t)
	}
	evaluate()
	if mayBeInactive(r.Causes[own:]) && s.findLeaderless(ctx, r) {
		evaluate()
	}
	unconfirmed, unread := s.detail(ctx, r.Causes[own:])
	if unconfirmed && s.findLeaderless(ctx, r) {
		evaluate()
		_, unread = s.detail(ctx, r.Causes[own:])
	}
	r.Unknown = append(r.Unknown, unread...)
	r.separate(own, s.config.Now)
	r.Facts = s.evaluation.facts(t)
	return ready
}

// conclude completes the result for one object. It separates recent progress from problems, and adds what could not be read and
// could change the result: dependencies, unless the cause is certain, and controllers, if the object reports no failure or no
// controller was found.
func (s *diagnosis) conclude(r Result) Result {
	r.separate(0, s.config.Now)
	r.RootCauses, r.Problems = len(r.Causes), min(len(r.Causes), 1)
	r.Unknown = append(s.evaluation.unknown(r.Causes), r.Unknown...)
	return r
}
