package revision

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/repository"
)

// withhold records that a Kustomization or HelmRelease is created, changed or removed by an
// owner that is suspended, or that is withheld itself. One with an unchanged spec is
// reconciled as before.
func (w *walker) withhold(before, after *repository.Rendering, p pair) {
	parent := after
	if parent == nil {
		parent = before
	}
	by := controllers.VersionedIDOf(parent.Owner.Object)
	if above := w.withheld[by.ID]; above != nil {
		by = above.By
	} else if kind, _ := by.Flux(); !kind.Suspension.Is(parent.Owner.Object) {
		return
	}
	action := diff.Changed
	switch {
	case p.base == nil:
		action = diff.Created
	case p.head == nil:
		action = diff.Pruned
	case equality.Semantic.DeepEqual(p.base.Object["spec"], p.head.Object["spec"]):
		return
	}
	w.withheld[controllers.IDOf(p.either().Object)] = &diff.Withholding{By: by, Action: action}
}
