package reconcile

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// farthest is the maximum number of steps in the search for another attempt: a
// release, its chart and repository, its Kustomization and the source of the
// Kustomization.
const farthest = 4

// upstream finds the cause of another attempt at a failed object.
type upstream struct {
	reads *reads
	seen  map[string]bool
}

// pending describes why another attempt at an object will follow: a request or
// a spec that its controller has not handled, a revision that it has not
// attempted, or the same for its sources and owner. It returns "" if there is
// none.
func (u *upstream) pending(ctx context.Context, s objref.Target, o controllers.Object, steps int) (string, error) {
	if steps == farthest || u.seen[s.Named().String()] {
		return "", nil
	}
	u.seen[s.Named().String()] = true
	if why := unhandled(s, o); why != "" {
		return why, nil
	}
	for _, t := range s.Kind.Upstream(o) {
		source, found, err := u.get(ctx, t)
		if err != nil {
			return "", err
		}
		if !found {
			continue
		}
		if revision := source.Kind.Result.String(source.Object); revision != "" && !s.Kind.Tried(o, source.Kind, revision) {
			return s.Named().String() + " has not attempted " + source.Named().String() + " at " + controllers.Shorten(revision) + " yet", nil
		}
		if why, err := u.pending(ctx, source, source.Object, steps+1); why != "" || err != nil {
			return why, err
		}
	}
	owner, found, err := u.owner(ctx, o)
	if err != nil || !found {
		return "", err
	}
	return u.pending(ctx, owner, owner.Object, steps+1)
}

// unhandled describes a request or generation that the controller of an object
// has not handled.
func unhandled(s objref.Target, o controllers.Object) string {
	requested := controllers.Annotation(o, controllers.RequestAnnotation)
	working, _ := controllers.FindCondition(o, "Reconciling")
	switch {
	case s.Kind.Suspension.Is(o) || s.Kind.Static != nil && s.Kind.Static(o):
		return ""
	case requested != "" && s.Kind.Has(controllers.Reconcile) && requested != (controllers.Path{"status.lastHandledReconcileAt"}).String(o):
		return "a reconciliation of " + s.Named().String() + " was requested"
	case working.Status == "True" && working.Reason == "Progressing":
		return s.Named().String() + " is being reconciled"
	default:
		return ""
	}
}

// owner reads the applier of an object according to its owner labels.
func (u *upstream) owner(ctx context.Context, o controllers.Object) (objref.Target, bool, error) {
	t, ok := controllers.Manager(o)
	if !ok {
		return objref.Target{}, false, nil
	}
	return u.get(ctx, t)
}

// get reads a referenced object. found is false if it does not exist.
func (u *upstream) get(ctx context.Context, t controllers.ID) (objref.Target, bool, error) {
	k, ok := t.Flux()
	if !ok {
		return objref.Target{}, false, nil
	}
	s := objref.Target{Kind: k, Namespace: t.Namespace, Name: t.Name}
	var err error
	s.Object, err = u.reads.get(ctx, s)
	if apierrors.IsNotFound(err) {
		return objref.Target{}, false, nil
	}
	return s, err == nil, err
}
