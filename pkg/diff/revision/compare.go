// Package revision compares the objects that a repository deploys to a cluster at two of its
// revisions, without the cluster. It follows Kustomizations and HelmReleases from the cluster's
// folder, and renders only those that the changed files can affect.
package revision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/timeline"
)

// Tree is the content of a repository at one revision.
type Tree interface {
	fs.FS
	// Hash returns the same value for files and folders with the same content, and fs.ErrNotExist
	// for a missing name.
	Hash(name string) (string, error)
}

// Revision is one side of the comparison.
type Revision struct {
	Tree Tree
	// Name is the name of the revision in messages.
	Name string
}

// Options configure a comparison.
type Options struct {
	// Path is the folder from which the cluster is bootstrapped.
	Path string
	// Namespace is the namespace of Flux.
	Namespace string
	// Local reports whether an address is that of the repository.
	Local func(address string) bool
	// Branches are the branches whose head the revisions are compared for, if the repository does
	// not define the source of the cluster's folder.
	Branches []string
	// At returns the tree of the repository at another reference. It may be nil.
	At func(build.GitReference) (Tree, error)
	// Submodules returns a tree of the repository with the files of its submodules. It may be nil.
	Submodules func(Tree) (Tree, error)
	// Folders are the folders of sources whose address does not identify the repository.
	Folders map[controllers.ID]string
	// Vars, SecretVars and Strict are as in build.Options.
	Vars       map[string]string
	SecretVars []string
	Strict     bool
	// Decrypter decrypts the files of Kustomizations. It may be nil.
	Decrypter build.Decrypter
	// Renderer renders charts. If it is nil, HelmReleases are ignored.
	Renderer build.Renderer
	// Login logs in to registries of charts, see build.HelmOptions.
	Login build.Login
	// Hosts are hosts that charts are fetched from though they are not public, besides those that
	// the base names.
	Hosts []string
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
	// KubeVersion and APIVersions are the capabilities that charts see.
	KubeVersion string
	APIVersions []string
	// Warn is called once for each omission, and Note for each assumption. They may be nil.
	Warn, Note func(text string)
	// All renders everything, including what cannot have changed.
	All bool
	// Timeline predicts the order of the changes, for which everything is rendered.
	Timeline bool
	// Unset is as in build.Options.
	Unset func(o *unstructured.Unstructured, names []string)

	// shared is what several clusters have in common, or nil.
	shared *shared
}

// Outcome is the result of a comparison.
type Outcome struct {
	// Results are the results with differences, and those of owners that could not be compared,
	// parents first.
	Results []*diff.Result
	// Root is the Kustomization of the cluster's folder.
	Root controllers.VersionedID
	// Followed is the number of Kustomizations and HelmReleases, Rendered the number of those that
	// were rendered on both sides.
	Followed, Rendered int
	// Shared is the number of renderings that were taken over from another cluster.
	Shared int
	// Timeline is set if it was requested.
	Timeline *timeline.Prediction
}

// Compare compares two revisions. Objects that cannot be built are omitted and named in the error,
// which is then returned together with an outcome.
func Compare(ctx context.Context, base, head Revision, o Options) (*Outcome, error) {
	outcome, failed, err := compare(ctx, base, head, o)
	if err != nil {
		return nil, err
	}
	return outcome, joined(failed)
}

// compare returns the outcome together with what cannot be built.
func compare(ctx context.Context, base, head Revision, o Options) (*Outcome, []*BuildError, error) {
	reused := o.shared.count()
	w, roots, err := walk(ctx, base, head, o, (*walker).checkDependencies)
	if err != nil {
		return nil, nil, err
	}
	outcome := w.outcome(roots)
	outcome.Shared = w.shared.count() - reused
	return outcome, w.failed, nil
}

// walk follows the Kustomizations and HelmReleases of both revisions from the cluster's folder, and
// calls finally.
func walk(ctx context.Context, base, head Revision, o Options, finally func(*walker)) (*walker, pair, error) {
	o.Path, o.All = clean(o.Path), o.All || o.Timeline
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &walker{ctx: limited, stop: stop, Options: o, seen: map[controllers.ID]bool{}, withheld: map[controllers.ID]*diff.Withholding{}, report: newReport(o)}
	w.base, w.head = newSide(w, base), newSide(w, head)
	roots, err := w.roots()
	if err != nil {
		return nil, pair{}, err
	}
	for _, o := range []*unstructured.Unstructured{roots.base, roots.head} {
		if o != nil {
			w.seen[controllers.IDOf(o.Object)] = true
		}
	}
	w.kustomization(roots, false)
	w.checkOwn(roots)
	finally(w)
	if ctx.Err() != nil {
		return nil, pair{}, ctx.Err()
	}
	if limited.Err() != nil {
		return nil, pair{}, context.Cause(limited)
	}
	return w, roots, nil
}

// outcome returns the results of all pairs that were followed.
func (w *walker) outcome(roots pair) *Outcome {
	outcome := &Outcome{Root: controllers.VersionedIDOf(roots.either().Object), Followed: w.followed, Rendered: len(w.found)}
	all := diff.Builds(w.found)
	for _, r := range all {
		r.Revision, r.Withheld = w.head.Name, w.withheld[r.Owner.ID]
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
			outcome.Results = append(outcome.Results, &diff.Result{Owner: ref, Revision: w.head.Name, Builds: true, NotCompared: omission})
		}
	}
	for _, r := range w.blocked {
		r.Revision = w.head.Name
		outcome.Results = append(outcome.Results, r)
	}
	if w.Timeline {
		outcome.Timeline = predict(w, all)
	}
	w.concealed.Conceal(outcome)
	for _, failed := range w.failed {
		failed.err = w.concealed.Error(failed.err)
	}
	return outcome
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
	// Clusters are the folders of the clusters, if several are compared.
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

// pair is an object on both sides, or on one of them.
type pair struct{ base, head *unstructured.Unstructured }

func (p pair) either() *unstructured.Unstructured {
	if p.head != nil {
		return p.head
	}
	return p.base
}

type walker struct {
	Options
	ctx        context.Context
	stop       context.CancelCauseFunc
	base, head *side
	seen       map[controllers.ID]bool
	withheld   map[controllers.ID]*diff.Withholding
	found      []diff.Desired
	followed   int
	// depth is the number of releases on the way to the current one that charts install.
	depth int
	report
}

// kustomization compares the objects of a Kustomization and follows the Kustomizations and
// HelmReleases among them.
func (w *walker) kustomization(p pair, kept bool) {
	w.followed++
	if w.unavailable(p) {
		return
	}
	if p.base != nil && p.head != nil && !w.All {
		same, leaf := w.sameInputs(p)
		if same && leaf {
			return
		}
		if same {
			w.unchanged(p)
			return
		}
	}
	before, beforeOK := w.buildSide(w.base, p.base)
	after, afterOK := w.buildSide(w.head, p.head)
	if !beforeOK || !afterOK {
		return
	}
	w.sealedVariables(p)
	w.found = append(w.found, diff.Desired{Before: before, After: after, Kept: kept})
	w.children(before, after, kept)
}

// unavailable reports whether the source of a Kustomization is not in this repository, and records
// it. A change affects such a Kustomization unless its source is elsewhere and its definition and
// variables stay the same.
func (w *walker) unavailable(p pair) bool {
	reason, elsewhere := "", true
	for _, s := range w.sides(p) {
		_, err := s.content(build.SourceOf(s.ks))
		var missing *unavailableError
		if errors.As(err, &missing) {
			reason, elsewhere = missing.reason, elsewhere && missing.elsewhere
		}
	}
	if reason == "" {
		return false
	}
	same := p.base != nil && p.head != nil && equality.Semantic.DeepEqual(p.base.Object, p.head.Object) && w.sameReferences(p.head)
	if same {
		_, same = w.sameObject(build.SourceOf(p.head))
	}
	w.omit(p.either(), reason, !same || !elsewhere)
	return true
}

// sealedVariables records that the variables of a Kustomization change and are encrypted.
func (w *walker) sealedVariables(p pair) {
	if p.base == nil || p.head == nil {
		return
	}
	for _, object := range build.DataReferences(p.head) {
		var encrypted *build.EncryptedError
		_, err := w.head.lookup(nil).Data(w.ctx, object)
		if errors.As(err, &encrypted) && !w.sameData(object) {
			w.omit(p.head, fmt.Sprintf("its variables in %s change and are encrypted", object), true)
		}
	}
}

// unchanged renders one side of a Kustomization that is the same on both, to find its
// Kustomizations and HelmReleases.
func (w *walker) unchanged(p pair) {
	built, ok := w.buildSide(w.head, p.head)
	if ok && built != nil {
		w.base.adopt(w.base.add(p.base), built)
		w.children(built, built, false)
	}
}

// buildSide builds one side. The side is nil, with true, if the Kustomization does not exist
// there.
func (w *walker) buildSide(s *side, ks *unstructured.Unstructured) (*diff.Side, bool) {
	if ks == nil || w.ctx.Err() != nil {
		return nil, w.ctx.Err() == nil
	}
	built, err := s.build(s.add(ks))
	if err != nil {
		w.fail(s, ks, err)
		return nil, false
	}
	return built, true
}

// missing returns a callback that lets the build of an owner continue without data that may exist
// only on the cluster.
func (w *walker) missing(owner *unstructured.Unstructured, what, way string) func(controllers.ID, error) bool {
	return func(object controllers.ID, err error) bool {
		if w.ctx.Err() != nil {
			return false
		}
		w.lack(owner, object, err)
		w.warn("%s of %s omitted: %s%s", what, object, err, way)
		return true
	}
}

// children follows the Kustomizations and HelmReleases among the objects of both sides: those of
// the new side in its order, then those that are removed.
func (w *walker) children(before, after *diff.Side, kept bool) {
	for _, p := range pairs(before, after) {
		ref := controllers.IDOf(p.either().Object)
		if w.seen[ref] || w.ctx.Err() != nil {
			continue
		}
		w.seen[ref] = true
		w.withhold(before, after, p)
		stays := kept || p.head == nil && after != nil && !prunes(after.Owner, p.base)
		if build.IsKustomization(p.either()) {
			w.kustomization(p, stays)
		} else if w.Renderer != nil {
			w.release(p, stays)
		}
	}
}

// prunes reports whether an object that its owner no longer has is pruned.
func prunes(owner, o *unstructured.Unstructured) bool {
	k, _ := controllers.IDOf(owner.Object).Flux()
	prune, _, _ := unstructured.NestedBool(owner.Object, "spec", "prune")
	return (prune || k.Release) && o.GetAnnotations()[k.Keep.Key] != k.Keep.Value
}

func pairs(before, after *diff.Side) []pair {
	var all []pair
	at := map[controllers.ID]int{}
	for i, s := range []*diff.Side{after, before} {
		if s == nil {
			continue
		}
		for _, o := range s.Build.Objects {
			if !build.IsKustomization(o.Unstructured) && !build.IsHelmRelease(o.Unstructured) {
				continue
			}
			ref := controllers.IDOf(o.Unstructured.Object)
			if _, known := at[ref]; !known {
				at[ref] = len(all)
				all = append(all, pair{})
			}
			if i == 0 {
				all[at[ref]].head = o.Unstructured
			} else {
				all[at[ref]].base = o.Unstructured
			}
		}
	}
	return all
}
