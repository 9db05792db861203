package compare

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diff"
)

// Clusters are those that Kustomizations apply to, each with what has been
// compared with it.
type Clusters struct {
	*app.App
	here     *rest.Config
	settings Settings
	engines  map[string]*diff.Engine
}

// engine is the one of the cluster that a Kustomization or HelmRelease applies to.
func (c *Clusters) engine(ctx context.Context, owner *unstructured.Unstructured) (*diff.Engine, error) {
	cfg, key := c.here, ""
	if applied, err := clusterOf(ctx, c.App, owner, c.here); err != nil {
		return nil, err
	} else if applied != c.here {
		cfg, key = applied, owner.GetNamespace()+"/"+desired.Text(owner, "spec", "kubeConfig", "secretRef", "name")+"/"+desired.Text(owner, "spec", "kubeConfig", "secretRef", "key")
	}
	if known := c.engines[key]; known != nil {
		return known, nil
	}
	engine, err := diff.New(cfg)
	if err != nil {
		return nil, err
	}
	if c.engines == nil {
		c.engines = map[string]*diff.Engine{}
	}
	c.engines[key] = engine
	return engine, nil
}

// Compare compares what a plan has built with the cluster that it applies to.
func (c *Clusters) Compare(ctx context.Context, plan diff.Plan) (*diff.Result, error) {
	engine, err := c.engine(ctx, plan.Owner)
	if err != nil {
		return nil, err
	}
	standard := c.settings.account
	if !build.IsKustomization(plan.Owner) {
		standard = "" // it is a setting of kustomize-controller
	}
	plan.Account = diff.Account(plan.Owner, standard)
	line := c.UI.Progress(c.Now, "comparing the objects of %s", diff.RefOf(plan.Owner))
	defer line.Done()
	plan.Progress = line.Count
	return engine.Compare(ctx, plan)
}

// withGoing adds what goes with Kustomizations and HelmReleases that are
// pruned, and with those among that, and so on.
func (c *Clusters) withGoing(ctx context.Context, results []*diff.Result) ([]*diff.Result, error) {
	here, err := c.engine(ctx, &unstructured.Unstructured{Object: map[string]any{}})
	if err != nil {
		return nil, err
	}
	seen := map[diff.Ref]bool{}
	applied := appliedBy(results)
	for i := 0; i < len(results); i++ { // more come while it runs
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
				continue // it is an object of another cluster, and acts there
			}
			gone, err := c.Compare(ctx, diff.DeletionPlan(live))
			if ctx.Err() != nil {
				return nil, err
			}
			if err != nil { // that it goes is certain, and the controller may fail with the same
				gone = &diff.Result{Owner: ref, Warnings: []string{fmt.Sprintf("what goes with %s cannot be told: %s", ref, redact.Text(err.Error()))}}
			}
			noteMoves(gone, results[i].Owner, applied)
			results = append(results, gone)
		}
	}
	return results, nil
}

// appliedBy tells which Kustomization applies an object.
func appliedBy(results []*diff.Result) map[diff.Ref]diff.Ref {
	by := map[diff.Ref]diff.Ref{}
	for _, r := range results {
		for _, c := range r.Changes {
			if c.After != nil || c.Action == diff.Unchanged {
				by[c.Object] = r.Owner
			}
		}
	}
	return by
}

// noteMoves tells of what goes with one owner while another one applies it. Who
// prunes the owner applies before that, and the object is its own then.
func noteMoves(gone *diff.Result, pruner diff.Ref, applied map[diff.Ref]diff.Ref) {
	for i, c := range gone.Changes {
		to, moves := applied[c.Object]
		switch {
		case !moves || c.Action != diff.Pruned:
		case to == pruner:
			gone.Changes[i] = diff.Change{Object: c.Object, Action: diff.Skipped, Reason: "moves to " + to.String()}
		default:
			gone.Changes[i].Notes = append(c.Notes, fmt.Sprintf("%s applies it: unless that one is first, it is deleted and created anew", to))
		}
	}
}
