package reconcile

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/pkg/controllers"
)

// farthest bounds how many steps up another attempt is looked for: a release,
// its chart, the repository; its Kustomization, the repository of that.
const farthest = 4

// upstream looks for what gives an object that has failed another attempt.
type upstream struct {
	reads *reads
	seen  map[string]bool
}

// pending returns what is on its way to an object: a request or a spec that its
// controller has not handled, a revision that it has not tried, or the same of
// what it comes from. It is "" where nothing is.
func (u *upstream) pending(ctx context.Context, s Subject, o controllers.Object, steps int) (string, error) {
	if steps == farthest || u.seen[s.String()] {
		return "", nil
	}
	u.seen[s.String()] = true
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
			return s.String() + " has not tried " + source.String() + " at " + controllers.Shorten(revision) + " yet", nil
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

// unhandled returns what the controller of an object has still to handle.
func unhandled(s Subject, o controllers.Object) string {
	asked := controllers.Annotation(o, controllers.RequestAnnotation)
	working, _ := controllers.FindCondition(o, "Reconciling")
	switch {
	case s.Kind.Suspension.Is(o) || s.Kind.Static != nil && s.Kind.Static(o):
		return ""
	case asked != "" && s.Kind.Has(controllers.Reconcile) && asked != (controllers.Path{"status.lastHandledReconcileAt"}).String(o):
		return s.String() + " is requested to reconcile"
	case working.Status == "True" && working.Reason == "Progressing":
		return s.String() + " is being reconciled"
	default:
		return ""
	}
}

// owner reads the object whose inventory an object is in, as its labels say.
func (u *upstream) owner(ctx context.Context, o controllers.Object) (Subject, bool, error) {
	t, ok := controllers.Manager(o)
	if !ok {
		return Subject{}, false, nil
	}
	return u.get(ctx, t)
}

// get reads a referenced object; one that does not exist brings nothing.
func (u *upstream) get(ctx context.Context, t controllers.Target) (Subject, bool, error) {
	k, ok := controllers.FindKind(t.Kind)
	if !ok {
		return Subject{}, false, nil
	}
	s := Subject{Kind: k, Namespace: t.Namespace, Name: t.Name}
	var err error
	s.Object, err = u.reads.get(ctx, s)
	if apierrors.IsNotFound(err) {
		return Subject{}, false, nil
	}
	return s, err == nil, err
}
