package diff

import (
	"context"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/revision"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/repository"
)

// compareClusters compares one cluster, or several. It returns a timeline for each if the options request it.
func compareClusters(ctx context.Context, announce func(string, ...any), paths []string, several bool, base, head repository.Revision, options revision.Options) ([]*diff.Result, []*timeline.Prediction, error) {
	var clusters []revision.Cluster
	var failures error
	if several {
		announce("comparing %s with %s in %d clusters", head.Name, base.Name, len(paths))
		clusters, failures = revision.Clusters(ctx, base, head, paths, options)
	} else {
		announce("comparing %s with %s", head.Name, base.Name)
		options.Path = paths[0]
		var outcome *revision.Outcome
		if outcome, failures = revision.Compare(ctx, base, head, options); outcome != nil {
			clusters = []revision.Cluster{{Outcome: outcome}}
		}
	}
	var results []*diff.Result
	var timelines []*timeline.Prediction
	rendered, followed, shared := 0, 0, 0
	for _, c := range clusters {
		rendered, followed, shared = rendered+c.Rendered, followed+c.Followed, shared+c.Shared
		if len(c.Results) == 0 {
			c.Results = []*diff.Result{{Cluster: c.Path, Owner: c.Root, Revision: head.Name, Builds: true}}
		}
		results = append(results, c.Results...)
		if c.Timeline != nil {
			c.Timeline.Cluster = c.Path
			timelines = append(timelines, c.Timeline)
		}
	}
	if len(clusters) > 0 {
		announce("rendered %d of %d Kustomizations and HelmReleases: the others are unchanged", rendered, followed)
	}
	if shared > 0 {
		announce("renderings that clusters share: %d", shared)
	}
	return results, timelines, failures
}

// unchangedIn reports the clusters without changes, if there are others.
func unchangedIn(a *app.App, clusters []string) {
	if len(clusters) > 0 {
		a.UI.Action("no changes in %s", strings.Join(clusters, ", "))
	}
}
