package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/repository"
)

// pair is an object in both revisions, or in one of them.
type pair struct{ base, head *unstructured.Unstructured }

func (p pair) either() *unstructured.Unstructured {
	if p.head != nil {
		return p.head
	}
	return p.base
}

// both reports whether the object is in both revisions.
func (p pair) both() bool { return p.base != nil && p.head != nil }

// walker follows the Kustomizations and HelmReleases of both revisions, parents first.
type walker struct {
	Options
	graphs   repository.Pair
	ctx      context.Context // of the comparison
	seen     map[controllers.ID]bool
	withheld map[controllers.ID]*diff.Withholding
	found    []builds.Pair
	followed int
	// unfetched holds the HelmReleases that are the same in both revisions, and whose charts were not fetched.
	unfetched []pair
	// unbuilt holds the Kustomizations that are the same in both revisions, and that cannot be built.
	unbuilt []unbuilt
	// pushed holds the Kustomizations that are the same in both revisions, and whose source may have been pushed from this repository.
	pushed []pushed
	// depth is the number of releases whose charts install the current one.
	depth int
	report
}

// pushed is a Kustomization whose source may have been pushed from this repository, and whether it has another owner.
type pushed struct {
	unbuilt
	otherOwner bool
}

// unbuilt is a Kustomization that cannot be built, and the reason.
type unbuilt struct {
	owner  *unstructured.Unstructured
	reason string
}

// side is a graph with an object in it.
type side struct {
	*repository.Graph
	object *unstructured.Unstructured
}

// sides returns the revisions that contain an object.
func (w *walker) sides(p pair) []side {
	var all []side
	for _, s := range []side{{w.graphs.Base, p.base}, {w.graphs.Head, p.head}} {
		if s.object != nil {
			all = append(all, s)
		}
	}
	return all
}

// kustomization compares the objects of a Kustomization and follows the Kustomizations and HelmReleases among them.
func (w *walker) kustomization(p pair, kept bool) {
	w.followed++
	if w.unavailable(p) || w.indistinct(p) {
		return
	}
	if p.both() && !w.All {
		same, leaf := w.graphs.SameKustomization(p.base, p.head)
		if same && leaf {
			return
		}
		if same {
			w.unchanged(p)
			return
		}
	}
	w.encryptedVariables(p)
	w.compare(p, kept)
}

// compare renders an owner in both revisions and follows the owners among its objects.
func (w *walker) compare(p pair, kept bool) {
	before, beforeOK := w.kustomize(w.graphs.Base, p.base)
	after, afterOK := w.kustomize(w.graphs.Head, p.head)
	if !beforeOK || !afterOK {
		return
	}
	if operator.Renders(p.either()) {
		w.markUnstable(p, before, after, func(g *repository.Graph, owner *unstructured.Unstructured) (*repository.Rendering, bool) {
			again, err := repository.RenderAgain(g, owner)
			return again, err == nil
		})
	}
	w.found = append(w.found, builds.Pair{Before: before, After: after, Kept: kept})
	// flux-operator uninstalls Flux when a FluxInstance is deleted, and keeps the objects that Flux has applied.
	w.children(before, after, kept || after == nil && controllers.IDOf(before.Owner.Object).IsFluxInstance())
}

// unavailable reports whether the source of a Kustomization is not in this repository, and records it. A change does not
// affect such a Kustomization if its spec, its variables and its source stay the same, and either the source is elsewhere or
// it is not defined and the files at its path in this repository stay the same, too. If the source may have been pushed from this
// repository, checkUnfollowed decides by the changed files.
func (w *walker) unavailable(p pair) bool {
	reason, elsewhere, undefined, artifact, otherOwner := "", true, true, false, true
	for _, s := range w.sides(p) {
		_, err := s.Content(build.SourceOf(s.object))
		var missing *repository.UnavailableError
		if errors.As(err, &missing) {
			reason, elsewhere, undefined = missing.Reason, elsewhere && missing.Elsewhere, undefined && missing.Undefined
			artifact, otherOwner = artifact || missing.Artifact, otherOwner && missing.OtherOwner
		}
	}
	if reason == "" {
		return false
	}
	same := p.both() && repository.SameInputs(p.base, p.head) && w.graphs.SameReferences(p.head) && w.graphs.SameSource(build.SourceOf(p.head))
	affected := !same || !elsewhere && !(undefined && w.graphs.SameFiles(p.head))
	if artifact && !affected {
		w.pushed = append(w.pushed, pushed{unbuilt{p.head, reason}, otherOwner})
		return true
	}
	w.omit(p.either(), reason, affected)
	return true
}

// indistinct reports whether the reference of a source changes although one directory is set for all of its references, and
// records it.
func (w *walker) indistinct(p pair) bool {
	if !p.both() {
		return false
	}
	source, is := w.graphs.Indistinct(p.base, p.head)
	if is {
		w.omit(p.head, fmt.Sprintf("the reference of %s changes, and --map sets one directory for all references", source), true)
	}
	return is
}

// encryptedVariables records that the variables of a Kustomization change and are encrypted.
func (w *walker) encryptedVariables(p pair) {
	if !p.both() {
		return
	}
	for _, object := range build.DataReferences(p.head) {
		var encrypted *build.EncryptedError
		_, err := w.graphs.Head.Data(w.ctx, object)
		if errors.As(err, &encrypted) && !w.graphs.SameData(object) {
			w.omit(p.head, fmt.Sprintf("its variables in %s change and are encrypted", object), true)
		}
	}
}

// unchanged renders a Kustomization that is the same in both revisions once, to find its Kustomizations and HelmReleases.
func (w *walker) unchanged(p pair) {
	built, err := w.graphs.Head.Render(p.head)
	if w.err() != nil {
		return
	}
	if err != nil {
		w.unbuilt = append(w.unbuilt, unbuilt{p.head, repository.CannotBuild(p.head, w.concealed.Error(err))})
		return
	}
	w.graphs.Base.Adopt(p.base, built)
	w.children(built, built, false)
}

// kustomize renders a Kustomization in one revision. It returns nil and true if the revision does not contain it.
func (w *walker) kustomize(g *repository.Graph, ks *unstructured.Unstructured) (*repository.Rendering, bool) {
	if ks == nil || w.err() != nil {
		return nil, w.err() == nil
	}
	built, err := g.Render(ks)
	var unknown *operator.UnknownError
	if errors.As(err, &unknown) {
		return nil, false // checkUnfollowed reports it
	}
	if err != nil {
		w.fail(g, ks, err)
		return nil, false
	}
	return built, true
}

// missing records data that may exist only on the cluster, and without which an owner is rendered.
func (w *walker) missing(owner *unstructured.Unstructured, object controllers.ID, err error) bool {
	what, remedy := "values", ""
	switch {
	case build.IsKustomization(owner):
		what, remedy = "variables", ": set them with --vars-file"
	case operator.Renders(owner):
		what = "data"
	}
	reason := fmt.Sprint(err)
	if errors.As(err, new(*build.EncryptedError)) {
		reason = "encrypted with SOPS" // the same in all namespaces
	}
	key := missingData{what, object.WithoutNamespace().String(), reason + remedy}
	if !slices.Contains(w.missedIn[key], object.Namespace) {
		w.missedIn[key] = append(w.missedIn[key], object.Namespace)
	}
	return true
}

// children follows the Kustomizations and HelmReleases among the objects of both revisions: those of the new revision in
// its order, then those that are removed.
func (w *walker) children(before, after *repository.Rendering, kept bool) {
	for _, p := range pairs(before, after) {
		id := controllers.IDOf(p.either().Object)
		if w.seen[id] || w.err() != nil {
			continue
		}
		w.seen[id] = true
		w.withhold(before, after, p)
		stays := kept || p.head == nil && after != nil && !prunes(after, p.base)
		switch {
		case build.IsKustomization(p.either()):
			w.kustomization(p, stays)
		case operator.Renders(p.either()):
			w.followed++
			w.compare(p, stays)
		case w.Charts.Renderer != nil:
			w.release(p, stays)
		}
	}
}

// prunes reports whether an object that its owner no longer applies is pruned.
func prunes(by *repository.Rendering, o *unstructured.Unstructured) bool {
	if slices.Contains(by.Build.Excluded, controllers.VersionedIDOf(o.Object)) {
		return false
	}
	k, _ := controllers.IDOf(by.Owner.Object).Flux()
	prune, _, _ := unstructured.NestedBool(by.Owner.Object, "spec", "prune")
	return (prune || k.Prunes) && o.GetAnnotations()[k.Keep.Key] != k.Keep.Value
}

func pairs(before, after *repository.Rendering) []pair {
	var all []pair
	at := map[controllers.ID]int{}
	for i, rendering := range []*repository.Rendering{after, before} {
		if rendering == nil {
			continue
		}
		for _, o := range rendering.Build.Objects {
			if !build.IsKustomization(o.Unstructured) && !build.IsHelmRelease(o.Unstructured) && !operator.Renders(o.Unstructured) {
				continue
			}
			id := controllers.IDOf(o.Unstructured.Object)
			if _, known := at[id]; !known {
				at[id] = len(all)
				all = append(all, pair{})
			}
			if i == 0 {
				all[at[id]].head = o.Unstructured
			} else {
				all[at[id]].base = o.Unstructured
			}
		}
	}
	return all
}

// release compares the objects that a HelmRelease installs, and follows the Kustomizations and HelmReleases among them.
func (w *walker) release(p pair, kept bool) {
	w.followed++
	if w.indistinct(p) {
		return
	}
	if p.both() && !w.All && w.graphs.SameRelease(p.base, p.head) {
		w.unchangedRelease(p)
		return
	}
	revision := repository.Install
	if p.both() {
		revision = repository.Upgrade // in both, so that only the change differs
	}
	before, beforeOK := w.render(w.graphs.Base, p.base, revision, repository.First)
	after, afterOK := w.render(w.graphs.Head, p.head, revision, repository.First)
	if !beforeOK || !afterOK {
		return
	}
	w.markUnstable(p, before, after, func(g *repository.Graph, hr *unstructured.Unstructured) (*repository.Rendering, bool) {
		return w.render(g, hr, revision, repository.Second)
	})
	if reason := hidden(w, p, revision, before, after); reason != "" {
		w.omit(p.head, reason, true)
	}
	w.found = append(w.found, builds.Pair{Before: before, After: after, Kept: kept, Warning: w.unversioned(p)})
	w.installed(before, after, kept)
}

// unversioned returns a warning about a chart that changes without a new version, or "".
func (w *walker) unversioned(p pair) string {
	if !p.both() {
		return ""
	}
	version := w.graphs.UnversionedChart(p.base, p.head)
	if version == "" {
		return ""
	}
	return "changes to the chart are not applied until its version " + version + " changes, because reconcileStrategy is ChartVersion"
}

// unchangedRelease renders a HelmRelease that is the same in both revisions once if it may install Kustomizations or
// HelmReleases, and follows these.
func (w *walker) unchangedRelease(p pair) {
	if !w.graphs.Head.MayInstallFlux(p.head) {
		w.unfetched = append(w.unfetched, p)
		return
	}
	if built, ok := w.render(w.graphs.Head, p.head, repository.Upgrade, repository.First); ok && built != nil {
		w.installed(built, built, false)
	}
}

// installed follows the Kustomizations and HelmReleases that a HelmRelease installs.
func (w *walker) installed(before, after *repository.Rendering, kept bool) {
	w.depth++
	defer func() { w.depth-- }()
	for _, rendering := range []*repository.Rendering{before, after} {
		if rendering != nil && repository.CheckDepth(w.graphs.Head, rendering.Owner, w.depth) != nil {
			return
		}
	}
	w.children(w.graphs.Base.Installed(before), w.graphs.Head.Installed(after), kept)
}

// markUnstable renders an owner that changes again, to find values that differ on every rendering.
func (w *walker) markUnstable(p pair, before, after *repository.Rendering, render func(*repository.Graph, *unstructured.Unstructured) (*repository.Rendering, bool)) {
	if before == nil || after == nil || same(before, after) {
		return
	}
	again, ok := render(w.graphs.Head, p.head)
	if !ok || !unstable(after, again) {
		return
	}
	if again, ok = render(w.graphs.Base, p.base); ok {
		unstable(before, again)
	}
}

// unstable marks the values of a rendering that differ in a second one, and reports whether there are any.
func unstable(r, again *repository.Rendering) bool {
	objects, hooks := build.MarkUnstable(r.Build, again.Build), build.MarkUnstable(&r.Hooks, &again.Hooks)
	return objects || hooks
}

// render renders a HelmRelease in one revision. It returns nil and true if the revision does not contain it.
func (w *walker) render(g *repository.Graph, hr *unstructured.Unstructured, revision int, attempt repository.Attempt) (*repository.Rendering, bool) {
	if hr == nil || w.err() != nil {
		return nil, w.err() == nil
	}
	rendering, err := g.Release(hr, revision, attempt)
	if reason, ok := repository.ChartUnavailable(err); ok {
		w.omit(hr, reason, true)
		return nil, false
	}
	if err != nil {
		w.fail(g, hr, err)
		return nil, false
	}
	return rendering, true
}
