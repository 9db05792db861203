package get

import (
	"github.com/fluxkit/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/pkg/controllers"
)

// keeps reports whether an object matches all filters.
func (q *query) keeps(k controllers.Kind, o controllers.Object) bool {
	ready := k.Ready(o).Status
	if q.options.suspended && !k.Suspension.Is(o) || q.options.notReady && ready == "True" || q.options.failed && !kinds.Failed(k, o) {
		return false
	}
	if _, stalled := controllers.Stalled(o); q.options.stalled && !stalled {
		return false
	}
	return q.status.Matches(k, o)
}
