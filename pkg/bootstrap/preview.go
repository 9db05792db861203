package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
)

// Preview is what a run would create or change.
type Preview struct {
	// Host is what would be done on the Git host, in words that follow "would".
	Host []string `json:"host"`
	// Branch is where commits would go.
	Branch string `json:"branch"`
	// Patch is what they would change, as a unified diff; "" for nothing.
	Patch string `json:"patch"`
	// Cluster are the objects of the cluster, in the order of their installation.
	Cluster []ObjectPreview `json:"cluster"`
}

// ObjectPreview is what would become of an object.
type ObjectPreview struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Action is "created", "configured" or "unchanged".
	Action string `json:"action"`
}

// String names the object as kubectl does.
func (o ObjectPreview) String() string {
	if o.Namespace == "" {
		return o.Kind + "/" + o.Name
	}
	return o.Kind + "/" + o.Namespace + "/" + o.Name
}

const (
	created    = "created"
	configured = "configured"
	unchanged  = "unchanged"
)

// preview rehearses the run: commits stay here, and the cluster's server
// answers as if and keeps nothing.
func (r *run) preview(ctx context.Context) (Preview, error) {
	p := Preview{Host: slices.Clone(r.hosted.Changes), Branch: r.plan.Branch}
	p.Host = append(p.Host, r.accessChanges()...)
	pending, err := r.pending(r.clone)
	if err != nil {
		return p, err
	}
	if pending {
		if p, err = r.previewCommits(p); err != nil {
			return p, err
		}
	}
	objects, err := r.build()
	if err != nil {
		return p, err
	}
	if r.plan.PullSecret != nil {
		objects = append(objects, r.plan.PullSecret)
	}
	p.Cluster, err = r.previewObjects(ctx, objects)
	return p, err
}

func (r *run) previewCommits(p Preview) (Preview, error) {
	if r.plan.ChangeRequest {
		p.Branch = r.requestBranch()
		p.Host = append(p.Host, fmt.Sprintf("ask for branch %q to be merged into %q", p.Branch, r.plan.Branch))
	}
	said := r.say
	r.say = warningsOnly{said} // nothing is committed that anybody would see
	_, err := r.commit()
	r.say = said
	if err != nil {
		return p, err
	}
	patch, err := r.clone.Patch()
	p.Patch = patch
	return p, err
}

// warningsOnly is a Progress in which nothing is said to happen.
type warningsOnly struct{ Progress }

func (warningsOnly) Action(string, ...any)  {}
func (warningsOnly) Success(string, ...any) {}

// accessChanges are what the host would be asked for the cluster's sake.
func (r *run) accessChanges() []string {
	switch {
	case r.plan.DeployToken && r.deployed.token == "":
		return []string{fmt.Sprintf("make the deploy token %q", r.keyTitle())}
	case !r.plan.bySSH() || !r.key.ask:
		return nil
	case r.key.replaces:
		return []string{fmt.Sprintf("replace the deploy key %q", r.keyTitle())}
	case r.byPerson():
		return []string{"ask for the cluster's key to be given access to " + r.host.SyncURL}
	default:
		return []string{fmt.Sprintf("give the deploy key %q access", r.keyTitle())}
	}
}

func (r *run) previewObjects(ctx context.Context, objects []*unstructured.Unstructured) ([]ObjectPreview, error) {
	previews := make([]ObjectPreview, len(objects), len(objects)+1)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(previewsAtOnce)
	for i, o := range objects {
		g.Go(func() (err error) {
			previews[i] = ObjectPreview{o.GetKind(), o.GetNamespace(), o.GetName(), created}
			previews[i].Action, err = r.previewObject(gctx, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	secret := ObjectPreview{"Secret", r.namespace(), r.plan.Sync.SecretName, created}
	switch {
	case r.found.secret == nil:
	case (!r.plan.DeployToken || r.deployed.token != "") && maps.Equal(secretData(r.found.secret), r.wantedSecret()):
		secret.Action = unchanged
	default:
		secret.Action = configured
	}
	return append(previews, secret), nil
}

// previewsAtOnce bounds the requests that are under way at the same time.
const previewsAtOnce = 16

// previewObject has the server apply an object without keeping it. What needs
// a namespace or a definition that is not there yet would be created.
func (r *run) previewObject(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	u, err := r.client.Upsert(ctx, o, true)
	var missing *kube.MissingKindError
	switch {
	case apierrors.IsNotFound(err) || kube.NotServed(err) || errors.As(err, &missing):
		return created, nil
	case err != nil:
		return "", err
	case u.Before == nil:
		return created, nil
	case len(u.Changes()) == 0:
		return unchanged, nil
	default:
		return configured, nil
	}
}
