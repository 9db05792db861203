package diff

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

// Account is the user that the controller acts as for a Kustomization: its
// service account, or the standard one of the controller, which may be "". It
// is "" where the controller acts as itself.
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

// actor asks the server as the controller would.
type actor struct {
	client *kube.Client
	// account is "" for who runs the comparison: what that one may not do says
	// nothing about the controller.
	account string

	mu  sync.Mutex
	may map[kube.Permission]bool
}

// unseen is what is said, once, where nobody may be impersonated.
const unseen = "you may not act as %s: the dry runs are made with your own permissions, and what service accounts may not do is not seen"

// actorFor returns who asks for dry runs of a plan, and a warning where that
// is not the controller's account.
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
		e.warned, warning = true, fmt.Sprintf(unseen, account)
	}
	e.actors[account] = who
	return who, warning, nil
}

// impersonate acts as an account, or as who runs the comparison where that one
// may not: who is impersonated already cannot impersonate others.
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
	switch _, err := client.WhoAmI(ctx); {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot impersonate "):
		return e.self, nil
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		// A server that does not tell, or not everybody, lets one act all the same.
		return nil, fmt.Errorf("acting as %s: %w", account, err)
	}
	return &actor{client: client, account: account, may: map[kube.Permission]bool{}}, nil
}

// denied tells whether a refusal is about what an actor may not do at all.
func (a *actor) denied(err error) bool {
	return a.account != "" && apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ")
}

// allowed asks once for each kind and namespace, and for each object only
// where that is denied. Of who runs the comparison, nothing is asked.
func (a *actor) allowed(ctx context.Context, verb string, r kube.Resource, ref Ref) (bool, error) {
	if a.account == "" {
		return true, nil
	}
	p := kube.Permission{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: ref.Namespace}
	a.mu.Lock()
	defer a.mu.Unlock()
	all, asked := a.may[p]
	if !asked {
		var err error
		if all, err = a.client.May(ctx, p); err != nil {
			return false, err
		}
		a.may[p] = all
	}
	if all {
		return true, nil
	}
	p.Name = ref.Name
	return a.client.May(ctx, p)
}

// mayNot is a failure in the words of the API server.
func (a *actor) mayNot(verb string, r kube.Resource, ref Ref) string {
	where := ""
	if ref.Namespace != "" {
		where = fmt.Sprintf(" in the namespace %q", ref.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q%s", a.account, verb, r.Resource, r.Group, where)
}
