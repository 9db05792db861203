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
	"github.com/fluxkit/flux/pkg/controllers"
)

// Preview lists the changes that a bootstrap run would make.
type Preview struct {
	// Host describes the changes on the Git host, as in "create the repository".
	Host []string `json:"host"`
	// Branch is the branch that would be pushed to.
	Branch string `json:"branch"`
	// Patch is a unified diff of the commits, "" for none.
	Patch string `json:"patch"`
	// Cluster lists the objects of the cluster in the order in which they are
	// applied.
	Cluster []ObjectPreview `json:"cluster"`
}

// ObjectPreview is the result of a dry run of one object.
type ObjectPreview struct {
	controllers.ID
	// Action is "created", "configured" or "unchanged".
	Action string `json:"action"`
}

const (
	created    = "created"
	configured = "configured"
	unchanged  = "unchanged"
)

// preview returns the changes of a dry run: commits are not pushed, and objects
// are applied with server-side dry run.
func (r *run) preview(ctx context.Context) (Preview, error) {
	p := Preview{Host: slices.Clone(r.repository.onHost.Changes), Branch: r.plan.Branch}
	p.Host = append(p.Host, r.access.changes()...)
	pending, err := r.files.pending(r.repository.clone)
	if err != nil {
		return p, err
	}
	if pending {
		if p, err = r.previewCommits(p); err != nil {
			return p, err
		}
	}
	objects, err := r.files.build()
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
		p.Branch = r.plan.requestBranch()
		p.Host = append(p.Host, fmt.Sprintf("open a pull request to merge branch %q into %q", p.Branch, r.plan.Branch))
	}
	r.commits.progress = warningsOnly{r.progress} // the commits are not pushed
	if _, err := r.commits.commit(); err != nil {
		return p, err
	}
	patch, err := r.repository.clone.Patch()
	p.Patch = patch
	return p, err
}

// warningsOnly is a Progress that only reports warnings.
type warningsOnly struct{ Progress }

func (warningsOnly) Action(string, ...any)  {}
func (warningsOnly) Success(string, ...any) {}

func (r *run) previewObjects(ctx context.Context, objects []*unstructured.Unstructured) ([]ObjectPreview, error) {
	previews := make([]ObjectPreview, len(objects), len(objects)+1)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxConcurrentPreviews)
	for i, o := range objects {
		g.Go(func() (err error) {
			previews[i] = ObjectPreview{controllers.IDOf(o.Object), created}
			previews[i].Action, err = previewObject(gctx, r.cluster.client, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	secret := ObjectPreview{controllers.ID{Kind: "Secret", Namespace: r.plan.namespace(), Name: r.plan.Sync.SecretName}, created}
	switch {
	case r.cluster.secret == nil:
	case (!r.plan.DeployToken || r.access.deployed.token != "") && maps.Equal(secretData(r.cluster.secret), r.access.wantedSecret()):
		secret.Action = unchanged
	default:
		secret.Action = configured
	}
	return append(previews, secret), nil
}

// maxConcurrentPreviews bounds the number of concurrent requests.
const maxConcurrentPreviews = 16

// previewObject applies an object with server-side dry run. An object whose
// namespace or CRD does not exist yet would be created.
func previewObject(ctx context.Context, client *kube.Client, o *unstructured.Unstructured) (string, error) {
	u, err := kube.Upsert(ctx, client, o, true)
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
