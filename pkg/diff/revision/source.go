package revision

import (
	"context"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	live "github.com/fluxkit/flux/pkg/diff/compare" // this package has a function compare
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// OfSource compares a revision of the source of a Kustomization with the revision of the comparer. Both builds have the
// current spec and variables of the Kustomization.
func OfSource(ctx context.Context, c *live.Comparer, base, namespace, name string) (*diff.Result, error) {
	before := *c
	before.Revision, before.Branch = base, ""
	revision, concealed := "", &diff.Concealment{}
	var sides []*repository.Rendering
	for _, side := range []*live.Comparer{&before, c} {
		plan, err := side.NewPlan(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		revision = plan.Revision()
		c.Announce("building %s at %s", controllers.VersionedIDOf(plan.Ks.Object), controllers.Shorten(revision))
		built, err := plan.Run(ctx)
		if err != nil {
			return nil, desired.ExplainBuild(err)
		}
		concealed.Add(built)
		sides = append(sides, &repository.Rendering{Owner: plan.Ks, Build: built})
	}
	result := builds.Compare([]builds.Pair{{Before: sides[0], After: sides[1]}})[0]
	result.Revision, result.Concealed = revision, concealed
	return result, nil
}
