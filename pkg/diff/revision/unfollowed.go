package revision

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// checkUnfollowed reports the objects that may create Flux objects, which are not rendered, and the Kustomizations that are the
// same in both revisions and cannot be built. The change may affect them if such an object changes, or a file that nothing else
// reads in a directory that they may read, or a file of a source that may have been pushed from this repository.
func (w *walker) checkUnfollowed() {
	was, is := w.graphs.Base.Unfollowed(), w.graphs.Head.Unfollowed()
	if len(was)+len(is)+len(w.unfetched)+len(w.unbuilt)+len(w.pushed) == 0 || w.err() != nil {
		return
	}
	changed, err := w.graphs.Changed()
	if err != nil {
		w.failed = append(w.failed, incomparable(w.graphs, err))
		return
	}
	unread := w.graphs.Unread(changed)
	w.installers(unread)
	both := maps.Clone(was)
	maps.Copy(both, is)
	for _, id := range slices.SortedFunc(maps.Keys(both), controllers.ID.Compare) {
		object, reason := both[id].Object, both[id].Reason
		if was[id].Object == nil || is[id].Object == nil || !equality.Semantic.DeepEqual(was[id].Object.Object, is[id].Object.Object) {
			w.omit(object, reason, true)
			continue
		}
		w.omitUnread(object, reason, both[id].Directories, unread)
	}
	for _, u := range w.unbuilt {
		w.omitUnread(u.owner, u.reason, []string{"."}, w.graphs.MayRead(u.owner, unread))
	}
	if len(w.pushed) == 0 {
		return
	}
	filesOf, err := w.graphs.Pushed(changed, unread)
	if err != nil {
		w.failed = append(w.failed, incomparable(w.graphs, err))
		return
	}
	for _, u := range w.pushed {
		w.omitUnread(u.owner, u.reason, []string{"."}, filesOf(u.owner, u.otherOwner))
	}
}

// incomparable returns the error of revisions whose files cannot be compared.
func incomparable(p repository.Pair, err error) *BuildError {
	return &BuildError{Revisions: []string{p.Base.Name, p.Head.Name}, err: err}
}

// omitUnread records that an object is not compared. The change may affect it if it changes a file in one of the directories.
func (w *walker) omitUnread(o *unstructured.Unstructured, reason string, directories, unread []string) {
	files := slices.DeleteFunc(slices.Clone(unread), func(name string) bool {
		return !slices.ContainsFunc(directories, func(folder string) bool { return sourcetree.Within(folder, name) })
	})
	if len(files) > 0 {
		reason = fmt.Sprintf("%s; files that it may read change: %s", reason, budget.List(files, budget.Directories))
	}
	w.omit(o, reason, len(files) > 0)
}

// installers follows the HelmReleases whose charts were not fetched because they are the same in both revisions, if their
// charts may install Kustomizations that read files that nothing else reads.
func (w *walker) installers(unread []string) {
	var releases []*unstructured.Unstructured
	for _, p := range w.unfetched {
		releases = append(releases, p.head)
	}
	unread = w.graphs.Head.Mentioned(unread, releases...)
	for _, p := range w.unfetched {
		if len(w.graphs.Head.Mentioned(unread, p.head)) > 0 {
			if built, ok := w.render(w.graphs.Head, p.head, repository.Upgrade, repository.First); ok && built != nil {
				w.installed(built, built, false)
			}
		}
	}
}
