package dryrun

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Account returns the user that kustomize-controller impersonates for a Kustomization: its service
// account, or the controller's default service account. It is empty if the controller impersonates
// no one.
func Account(ks *unstructured.Unstructured, standard string) string {
	name := controllers.Path{"spec.serviceAccountName"}.String(ks.Object)
	if name == "" {
		name = standard
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("system:serviceaccount:%s:%s", ks.GetNamespace(), name)
}

// actor sends dry runs with the permissions of the controller.
type actor struct {
	client *kube.Client
	// account is empty for the user who runs the comparison, whose permissions may differ from the
	// controller's.
	account string

	mu  sync.Mutex
	may map[kube.Permission]bool
}

// impersonationDenied is the warning, printed once, for a user who may not impersonate.
const impersonationDenied = "no permission to impersonate %s: dry runs use your own permissions, and missing permissions of service accounts are not detected"

// actorFor returns the actor for the dry runs of a plan, and a warning if it cannot impersonate
// the account.
func (e *Engine) actorFor(ctx context.Context, account string) (*actor, string, error) {
	if account == "" {
		return e.self, "", nil
	}
	e.acting.Lock()
	defer e.acting.Unlock()
	if known, ok := e.actors[account]; ok {
		return known, "", nil
	}
	who, err := e.impersonate(ctx, account)
	if err != nil {
		return nil, "", err
	}
	warning := ""
	if who == e.self && !e.warned {
		e.warned, warning = true, fmt.Sprintf(impersonationDenied, account)
	}
	e.actors[account] = who
	return who, warning, nil
}

// impersonate returns an actor for the account, or the user's own actor if the user may not
// impersonate the account or already impersonates another user.
func (e *Engine) impersonate(ctx context.Context, account string) (*actor, error) {
	if e.config.Impersonate.UserName != "" {
		return e.self, nil
	}
	cfg := rest.CopyConfig(e.config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: account}
	client, err := kube.New(cfg)
	if err != nil {
		return nil, err
	}
	switch _, err := client.Access().WhoAmI(ctx); {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot impersonate "):
		return e.self, nil
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		// Impersonation works without SelfSubjectReview, which a server may not serve or may deny.
		return nil, fmt.Errorf("impersonating %s: %w", account, err)
	}
	return &actor{client: client, account: account, may: map[kube.Permission]bool{}}, nil
}

// denied reports whether the API server rejected a request because the actor lacks the permission.
func (a *actor) denied(err error) bool {
	return a.account != "" && apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ")
}

// allowed reports whether the actor has a permission. It sends one access review for each kind and
// namespace, and one for each object only if that is denied. It sends none for the user who runs
// the comparison.
func (a *actor) allowed(ctx context.Context, verb string, r kube.Resource, ref controllers.VersionedID) (bool, error) {
	if a.account == "" {
		return true, nil
	}
	p := kube.Permission{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: ref.Namespace}
	a.mu.Lock()
	defer a.mu.Unlock()
	all, asked := a.may[p]
	if !asked {
		var err error
		if all, err = a.client.Access().May(ctx, p); err != nil {
			return false, err
		}
		a.may[p] = all
	}
	if all {
		return true, nil
	}
	p.Name = ref.Name
	return a.client.Access().May(ctx, p)
}

// forbidden returns the error message of the API server for a missing permission.
func (a *actor) forbidden(verb string, r kube.Resource, ref controllers.VersionedID) string {
	where := ""
	if ref.Namespace != "" {
		where = fmt.Sprintf(" in the namespace %q", ref.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q%s", a.account, verb, r.Resource, r.Group, where)
}
