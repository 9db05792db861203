package examine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/settle"
)

// examination examines the result of a run.
type examination struct{ *testrun.Run }

// sortedFlux returns the Flux objects in the order of their names.
func (r examination) sortedFlux() []controllers.ID {
	return slices.SortedFunc(maps.Keys(r.Flux), func(a, b controllers.ID) int { return strings.Compare(a.String(), b.String()) })
}

// fileOf returns the file with the manifest of an object, "" if there is not exactly one.
func (r examination) fileOf(ctx context.Context, ref controllers.ID) string {
	if r.Exported != nil {
		return ""
	}
	return r.Repository.FileOf(ctx, ref.Kind, ref.Name)
}

// managed returns the selected objects in the inventory of an owner.
func managed(f settle.Flux, selected map[controllers.ID][]controllers.ID) map[controllers.VersionedID]bool {
	targets := map[controllers.VersionedID]bool{}
	for _, e := range controllers.Inventory(f.Object) {
		if selected[e.ID] != nil {
			targets[e] = true
		}
	}
	return targets
}
