package revision

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// follow adds the objects that a HelmRelease installs to the graphs, and follows the Kustomizations and HelmReleases
// among them.
func (w *walker) follow(before, after *diff.Side, kept bool) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > budget.TreeDepth {
		owner := cmp.Or(after, before).Owner
		w.stop(&budget.ExceededError{Name: controllers.IDOf(owner.Object).String(), Fact: fmt.Sprintf("charts install HelmReleases more than %d levels deep", budget.TreeDepth)})
		return
	}
	w.children(w.base.install(before), w.head.install(after), kept)
}

// install adds the Flux objects of a release to the graph, and returns a side with only these.
func (s *side) install(release *diff.Side) *diff.Side {
	if release == nil {
		return nil
	}
	by := &node{ks: release.Owner, state: done, leaf: true}
	by.built = &diff.Side{Owner: release.Owner, Build: &build.Result{}, Namespace: release.Namespace}
	for _, o := range release.Build.Objects {
		if _, ok := controllers.IDOf(o.Unstructured.Object).Flux(); !ok {
			continue
		}
		if o.GetNamespace() == "" {
			o.Unstructured = o.DeepCopy()
			o.SetNamespace(release.Namespace)
		}
		by.built.Build.Objects = append(by.built.Build.Objects, o)
	}
	if count(s, release.Owner, by.built.Build) == nil {
		s.index(by)
	}
	return by.built
}

// unchangedRelease renders one side of a HelmRelease that is the same on both if it may install Kustomizations or
// HelmReleases, and follows these.
func (w *walker) unchangedRelease(p pair) {
	if !mayInstallFlux(w.head, p.head) {
		return
	}
	if built, ok := w.renderSide(w.head, p.head, upgrade, first); ok && built != nil {
		w.follow(built, built, false)
	}
}

// mayInstallFlux reports whether a HelmRelease may install Kustomizations or HelmReleases: its spec or its values contain
// some, or its chart is in this repository and its templates contain some. Charts of other repositories are not fetched.
func mayInstallFlux(s *side, hr *unstructured.Unstructured) bool {
	spec, err := json.Marshal(hr.Object["spec"])
	if err != nil || fluxVersions().Match(spec) {
		return true
	}
	for _, object := range build.DataReferences(hr) {
		data, err := s.lookup(nil).Data(s.w.ctx, object)
		for _, value := range data {
			if err == nil && fluxVersions().Match(value) {
				return true
			}
		}
	}
	c, ok := chartOf(s, hr)
	if !ok {
		return false
	}
	tree, err := s.content(c.source)
	if err != nil {
		return false // it is not in this repository
	}
	files, err := build.ChartIn(tree, c.names[0])
	if err != nil || files.Archive != nil {
		return !errors.Is(err, fs.ErrNotExist) // rendering it reports the error
	}
	for name, text := range files.Files {
		if strings.HasSuffix(name, ".tgz") || fluxTemplates().Match(text) {
			return true
		}
	}
	return false
}

// fluxVersions matches the API versions of Kustomizations and HelmReleases, but not labels of Flux.
var fluxVersions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(kustomize|helm)\.toolkit\.fluxcd\.io/v\d`) })

// fluxTemplates matches a template that may contain a Kustomization or HelmRelease: an API group of Flux, or a template in
// place of an API version or a kind.
var fluxTemplates = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(kustomize|helm)\.toolkit\.fluxcd\.io|(apiVersion|kind)["']?\s*:[^\n]*\{\{`)
})
