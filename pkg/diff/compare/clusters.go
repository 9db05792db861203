package compare

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/dryrun"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// Clusters holds the target clusters of the owners, each with the results of its
// comparisons.
type Clusters struct {
	comparer *Comparer
	here     *rest.Config
	settings Settings
	engines  map[string]*dryrun.Engine
}

// engine returns the diff engine for the cluster that a Kustomization or
// HelmRelease applies to.
func (c *Clusters) engine(ctx context.Context, owner *unstructured.Unstructured) (*dryrun.Engine, error) {
	cfg, key := c.here, ""
	if applied, err := c.comparer.clusterOf(ctx, owner, c.here); err != nil {
		return nil, err
	} else if applied != c.here {
		cfg, key = applied, owner.GetNamespace()+"/"+desired.Text(owner, "spec", "kubeConfig", "secretRef", "name")+"/"+desired.Text(owner, "spec", "kubeConfig", "secretRef", "key")
	}
	if known := c.engines[key]; known != nil {
		return known, nil
	}
	engine, err := dryrun.New(cfg)
	if err != nil {
		return nil, err
	}
	if c.engines == nil {
		c.engines = map[string]*dryrun.Engine{}
	}
	c.engines[key] = engine
	return engine, nil
}

// Compare diffs the build in plan against its target cluster.
func (c *Clusters) Compare(ctx context.Context, plan dryrun.Plan) (*diff.Result, error) {
	engine, err := c.engine(ctx, plan.Owner)
	if err != nil {
		return nil, err
	}
	var settings Settings
	if build.IsKustomization(plan.Owner) {
		settings = c.settings
	}
	plan.Account, plan.Overridden = dryrun.Account(plan.Owner, settings.account), settings.overridden
	count, done := c.comparer.Track(controllers.VersionedIDOf(plan.Owner.Object))
	defer done()
	plan.Progress, plan.FieldOwners = count, c.comparer.FieldOwners
	return engine.Compare(ctx, plan)
}

// withDeletions appends the deletions that follow from pruned Kustomizations and
// HelmReleases, recursively.
func (c *Clusters) withDeletions(ctx context.Context, results []*diff.Result) ([]*diff.Result, error) {
	here, err := c.engine(ctx, &unstructured.Unstructured{Object: map[string]any{}})
	if err != nil {
		return nil, err
	}
	seen := map[controllers.VersionedID]bool{}
	applied := appliedBy(results)
	for i := 0; i < len(results); i++ { // results grows in the loop
		for _, ref := range results[i].Owners() {
			if seen[ref] {
				continue
			}
			seen[ref] = true
			live, err := here.Live(ctx, ref)
			if err != nil {
				return nil, err
			}
			if live == nil {
				continue // the owner is an object of another cluster
			}
			deletions, err := c.Compare(ctx, dryrun.DeletionPlan(live))
			if ctx.Err() != nil {
				return nil, err
			}
			if err != nil { // the owner is pruned in any case, and the controller may fail with the same error
				deletions = &diff.Result{Owner: ref, Warnings: []string{fmt.Sprintf("cannot determine the objects that are deleted with %s: %s", ref, redact.Text(err.Error()))}}
			}
			noteMoves(deletions, results[i].Owner, applied)
			results = append(results, deletions)
		}
	}
	return results, nil
}

// appliedBy returns the Kustomization that applies each object.
func appliedBy(results []*diff.Result) map[controllers.VersionedID]controllers.VersionedID {
	by := map[controllers.VersionedID]controllers.VersionedID{}
	for _, r := range results {
		for _, c := range r.Changes {
			if c.After != nil || c.Action == diff.Unchanged {
				by[c.Object] = r.Owner
			}
		}
	}
	return by
}

// noteMoves marks the objects of a deleted owner that another Kustomization
// applies. If the pruner is that Kustomization, it adopts the object before it
// prunes the owner.
func noteMoves(deletions *diff.Result, pruner controllers.VersionedID, applied map[controllers.VersionedID]controllers.VersionedID) {
	for i, c := range deletions.Changes {
		to, moves := applied[c.Object]
		switch {
		case !moves || c.Action != diff.Pruned:
		case to == pruner:
			deletions.Changes[i] = diff.Change{Object: c.Object, Action: diff.Skipped, Reason: "moves to " + to.String()}
		default:
			deletions.Changes[i].Notes = append(c.Notes, fmt.Sprintf("%s also applies it: unless that Kustomization reconciles first, the object is deleted and recreated", to))
		}
	}
}
