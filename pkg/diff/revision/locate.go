package revision

import (
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/repository"
)

// locate sets the files and lines, in the new revision, of results and their changes.
func locate(head *repository.Graph, results []*diff.Result) error {
	var wanted []repository.Wanted
	var set []func(repository.Place)
	for _, r := range results {
		owner := repository.Wanted{Object: r.Owner.ID, Applier: repository.Applier(head, r.Owner.ID)}
		wanted = append(wanted, owner)
		set = append(set, func(at repository.Place) { r.File, r.Line = at.File, at.Line })
		for i := range r.Changes {
			c := &r.Changes[i]
			if !c.Different() && len(c.Dangers) == 0 || c.After == nil {
				continue
			}
			of := owner
			if r.Owner.Kind == controllers.Kustomization {
				of = repository.Wanted{Object: c.Object.ID, Applier: repository.Applier(head, c.Object.ID)}
				if len(c.Fields) > 0 {
					of.Field = c.Fields[0].Path
				}
			}
			wanted = append(wanted, of)
			set = append(set, func(at repository.Place) { c.File, c.Line = at.File, at.Line })
		}
	}
	places, err := repository.Locate(head, wanted)
	for i, at := range places {
		set[i](at)
	}
	return err
}
