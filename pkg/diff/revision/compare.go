// Package revision compares the objects that a repository deploys to a cluster at two of its revisions, without the
// cluster. It follows the graphs of both revisions side by side, and renders only what the changed files can affect.
package revision

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/diff/timeline"
	"github.com/fluxkit/flux/pkg/repository"
)

// Options configure a comparison.
type Options struct {
	repository.Options
	// Warn is called once for each omission, and Note for each assumption. They may be nil.
	Warn, Note func(text string)
	// Ignore removes the fields that do not count as changes from results. It may be nil.
	Ignore func(results []*diff.Result)
	// All renders everything, including owners that cannot have changed.
	All bool
	// Locate calls read, which reads further files of the repository to find the files and lines of the changes. If Locate
	// is nil, they are not determined.
	Locate func(read func() error) error
	// Timeline predicts the order of the changes, which requires rendering everything.
	Timeline bool
}

// Outcome is the result of a comparison.
type Outcome struct {
	// Results lists the results with differences, and the results of owners that could not be compared, parents first.
	Results []*diff.Result
	// Root is the Kustomization of the cluster's directory.
	Root controllers.VersionedID
	// Followed is the number of Kustomizations and HelmReleases. Rendered is the number of those that were rendered on
	// both sides.
	Followed, Rendered int
	// Shared is the number of renderings that were reused from another cluster.
	Shared int
	// Timeline is set if it was requested.
	Timeline *timeline.Prediction
}

// Compare compares two revisions. Objects that cannot be built are omitted and listed in the error, which is then returned
// together with an outcome.
func Compare(ctx context.Context, base, head repository.Revision, o Options) (*Outcome, error) {
	outcome, failed, err := compare(ctx, base, head, o)
	if err != nil {
		return nil, err
	}
	return outcome, joined(failed)
}

// compare returns the outcome together with the objects that cannot be built.
func compare(ctx context.Context, base, head repository.Revision, o Options) (*Outcome, []*BuildError, error) {
	reused := 0
	if o.Memo != nil {
		reused = o.Memo.Reused
	}
	w := newWalker(ctx, o)
	was, is, err := repository.OpenBoth(ctx, base, head, w.Options.Options)
	if err != nil {
		return nil, nil, err
	}
	w.graphs = repository.Pair{Base: was, Head: is}
	roots := pair{was.Root(), is.Root()}
	for _, o := range []*unstructured.Unstructured{roots.base, roots.head} {
		if o != nil {
			w.seen[controllers.IDOf(o.Object)] = true
		}
	}
	w.kustomization(roots, false)
	w.checkUnfollowed()
	w.checkOwn(roots)
	w.checkDependencies()
	w.warnMissing()
	if err := w.err(); err != nil {
		return nil, nil, err
	}
	outcome, err := w.outcome(roots)
	if err != nil {
		return nil, nil, err
	}
	if o.Memo != nil {
		outcome.Shared = o.Memo.Reused - reused
	}
	return outcome, w.failed, nil
}

func newWalker(ctx context.Context, o Options) *walker {
	o.All = o.All || o.Timeline
	w := &walker{ctx: ctx, Options: o, seen: map[controllers.ID]bool{}, withheld: map[controllers.ID]*diff.Withholding{}, report: newReport(o)}
	w.Missing, w.Rendered = w.missing, w.concealed.Add
	return w
}

// lenient reports whether kustomize-controller of the cluster accepts variables without a value, if the builds contain any.
func lenient(head *repository.Graph, found []builds.Pair) bool {
	unset := func(o build.Object) bool { return len(o.Unset) > 0 }
	if !slices.ContainsFunc(found, func(p builds.Pair) bool { return p.After != nil && slices.ContainsFunc(p.After.Build.Objects, unset) }) {
		return false
	}
	deployment, err := head.Object(controllers.ID{Group: "apps", Kind: "Deployment", Namespace: head.Root().GetNamespace(), Name: "kustomize-controller"})
	if err != nil && !errors.Is(err, build.ErrNotFound) {
		return false
	}
	strict, known := controllers.StrictSubstitution(deployment, repository.Instance(head), "")
	return known && !strict
}

// outcome returns the results of all pairs that were followed.
func (w *walker) outcome(roots pair) (*Outcome, error) {
	outcome := &Outcome{Root: controllers.VersionedIDOf(roots.either().Object), Followed: w.followed, Rendered: len(w.found)}
	if lenient(w.graphs.Head, w.found) {
		for i := range w.found {
			w.found[i].Lenient = true
		}
	}
	all := builds.Compare(w.found)
	for _, r := range all {
		r.Revision, r.Withheld = w.graphs.Head.Name, w.withheld[r.Owner.ID]
		if omission := w.omitted[r.Owner]; omission != nil {
			r.NotCompared = omission
		}
		delete(w.omitted, r.Owner)
		if r.Different() || len(r.Warnings) > 0 || r.NotCompared != nil || r.Count(diff.Unstable) > 0 || r.Orphans() {
			outcome.Results = append(outcome.Results, r)
		}
	}
	for _, ref := range w.omissions {
		if omission := w.omitted[ref]; omission != nil {
			outcome.Results = append(outcome.Results, &diff.Result{Owner: ref, Revision: w.graphs.Head.Name, Builds: true, NotCompared: omission})
		}
	}
	for _, r := range w.blocked {
		r.Revision = w.graphs.Head.Name
		outcome.Results = append(outcome.Results, r)
	}
	if w.Timeline {
		outcome.Timeline = predict(w, all)
	}
	if w.Locate != nil {
		if err := w.Locate(func() error { return locate(w.graphs.Head, outcome.Results) }); err != nil {
			return nil, err
		}
	}
	w.concealed.Conceal(outcome)
	for _, failed := range w.failed {
		failed.err = w.concealed.Error(failed.err)
	}
	return outcome, nil
}

// predict returns the expected order of the changes of all owners.
func predict(w *walker, all []*diff.Result) *timeline.Prediction {
	p := timeline.Predict(w.found, all)
	for _, ref := range w.omissions {
		if omission := w.omitted[ref]; omission != nil {
			p.Unknown = append(p.Unknown, ref.String()+": "+omission.Reason)
		}
	}
	for _, r := range w.blocked {
		for _, c := range r.Changes {
			p.Blocked = append(p.Blocked, timeline.Blocked{Object: c.Object.ID, Reason: strings.Join(c.Notes, "; ")})
		}
	}
	return p
}

// BuildError is returned when an object cannot be built at one of the revisions, or at both for the
// same reason.
type BuildError struct {
	Revisions []string
	// Clusters lists the directories of the clusters, if several are compared.
	Clusters []string
	err      error
}

func (e *BuildError) Error() string {
	text := "at " + strings.Join(e.Revisions, " and ") + ": " + e.err.Error()
	if len(e.Clusters) > 0 {
		return "in " + strings.Join(e.Clusters, ", ") + ": " + text
	}
	return text
}

// Unwrap returns the cause.
func (e *BuildError) Unwrap() error { return e.err }
