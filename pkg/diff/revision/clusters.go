package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/repository"
)

// Cluster is the comparison of one of several clusters.
type Cluster struct {
	// Path is the directory from which the cluster is bootstrapped.
	Path string
	*Outcome
}

// All compares one cluster, or several if paths may match more than one, and announces what it does. It returns a timeline for
// each cluster if the options request it. The results are nil if the comparison failed.
func All(ctx context.Context, base, head repository.Revision, paths []string, several bool, announce func(string, ...any), options Options) ([]*diff.Result, []*timeline.Prediction, error) {
	var clusters []Cluster
	var failures error
	if several {
		announce("comparing %s with %s in %s", head.Name, base.Name, output.Amount(len(paths), "cluster"))
		clusters, failures = Clusters(ctx, base, head, paths, options)
	} else {
		announce("comparing %s with %s", head.Name, base.Name)
		options.Path = paths[0]
		var outcome *Outcome
		if outcome, failures = Compare(ctx, base, head, options); outcome != nil {
			clusters = []Cluster{{Outcome: outcome}}
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
		announce("renderings shared between clusters: %d", shared)
	}
	return results, timelines, failures
}

// Clusters compares two revisions for several clusters, and sets the cluster of each result. Content that the clusters share
// is rendered once. Objects that cannot be built are omitted and listed in the error, which is then returned together with the
// clusters.
func Clusters(ctx context.Context, base, head repository.Revision, paths []string, o Options) ([]Cluster, error) {
	said := &messages{clusters: map[string][]string{}}
	o.Memo = repository.NewMemo()
	var all []Cluster
	var failed []*BuildError
	for _, path := range paths {
		of := o
		of.Path, of.Warn, of.Note = path, said.from(path, o.Warn), said.from(path, o.Note)
		outcome, failures, err := compare(ctx, base, head, of)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", path, err)
		}
		for _, r := range outcome.Results {
			r.Cluster = path
		}
		all = append(all, Cluster{path, outcome})
		failed = merged(failed, failures, path)
	}
	said.pass()
	return all, joined(failed)
}

// merged adds the failures of a cluster to the failures of other clusters. Equal failures are merged.
func merged(known, failed []*BuildError, cluster string) []*BuildError {
	for _, f := range failed {
		same := slices.IndexFunc(known, func(k *BuildError) bool {
			return k.err.Error() == f.err.Error() && slices.Equal(k.Revisions, f.Revisions)
		})
		if same >= 0 {
			known[same].Clusters = append(known[same].Clusters, cluster)
			continue
		}
		f.Clusters = []string{cluster}
		known = append(known, f)
	}
	return known
}

func joined(failed []*BuildError) error {
	all := make([]error, len(failed))
	for i, err := range failed {
		all[i] = err
	}
	return errors.Join(all...)
}

// messages collects the messages of all clusters, to pass on each once.
type messages struct {
	order    []func()
	clusters map[string][]string
}

// from returns a callback for the messages of a cluster, or nil if they are discarded.
func (m *messages) from(cluster string, to func(text string)) func(text string) {
	if to == nil {
		return nil
	}
	return func(text string) {
		if m.clusters[text] == nil {
			m.order = append(m.order, func() { to(text + " (in " + strings.Join(m.clusters[text], ", ") + ")") })
		}
		m.clusters[text] = append(m.clusters[text], cluster)
	}
}

func (m *messages) pass() {
	for _, say := range m.order {
		say()
	}
}
