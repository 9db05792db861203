package revision

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
)

// release compares the objects that a HelmRelease installs.
func (w *walker) release(p pair, kept bool) {
	w.followed++
	if p.base != nil && p.head != nil && !w.All && w.sameRelease(p) {
		w.unchangedRelease(p)
		return
	}
	revision := install
	if p.base != nil && p.head != nil {
		revision = upgrade // of both sides, so that only the change differs
	}
	before, beforeOK := w.renderSide(w.base, p.base, revision, first)
	after, afterOK := w.renderSide(w.head, p.head, revision, first)
	if !beforeOK || !afterOK {
		return
	}
	if before != nil && after != nil {
		w.markUnstable(p, before, after, revision)
	}
	w.found = append(w.found, diff.Desired{Before: before, After: after, Kept: kept})
	w.follow(before, after, kept)
}

// The values of .Release.Revision for an installation and for an upgrade.
const install, upgrade = 1, 2

// markUnstable renders a release that changes again, to find values that differ on every rendering.
func (w *walker) markUnstable(p pair, before, after *diff.Side, revision int) {
	same := func(one, other *build.Result) bool {
		return equality.Semantic.DeepEqual(one.Unstructured(), other.Unstructured())
	}
	if same(before.Build, after.Build) {
		return
	}
	again, ok := w.renderSide(w.head, p.head, revision, second)
	if !ok || !build.MarkUnstable(after.Build, again.Build) {
		return
	}
	if again, ok = w.renderSide(w.base, p.base, revision, second); ok {
		build.MarkUnstable(before.Build, again.Build)
	}
}

// The renderings of a chart, whose generated values differ.
const first, second = "first", "second"

// renderSide renders one side. The side is nil, with true, if the HelmRelease does not exist
// there.
func (w *walker) renderSide(s *side, hr *unstructured.Unstructured, revision int, which string) (*diff.Side, bool) {
	if hr == nil || w.ctx.Err() != nil {
		return nil, w.ctx.Err() == nil
	}
	reads := &reader{shared: w.shared, side: s, lookup: s.lookup(nil)}
	twin := s.objects[controllers.IDOf(hr.Object)].Twin
	rendered, err := reads.render(hr, twin, fmt.Sprintf("%s rendering as revision %d", which, revision), func() (*rendering, error) {
		result, err := build.HelmRelease(w.ctx, hr, build.HelmOptions{
			Renderer: w.Renderer, Kustomizer: w.Kustomizer, Lookup: reads, Missing: reads.missing(w.missing(hr, "values", "")), Login: w.Login,
			KubeVersion: w.KubeVersion, APIVersions: w.APIVersions, Revision: revision,
			Find: reads.object, Sources: reads.files, Hosts: w.Hosts, Untrusted: reads.untrusted, Twin: twin,
		})
		if err != nil {
			return nil, err
		}
		built := result.Result
		built.Objects = append(result.CRDs, built.Objects...)
		return &rendering{Result: &built, namespace: result.Namespace}, nil
	})
	var source *build.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		reason := source.Error()
		var missing *unavailableError
		if errors.As(err, &missing) {
			reason = missing.reason
		}
		w.omit(hr, reason, true)
		return nil, false
	}
	if err != nil {
		w.fail(s, hr, err)
		return nil, false
	}
	w.concealed.Add(rendered.Result)
	return &diff.Side{Owner: hr, Build: rendered.Result, Namespace: rendered.namespace}, true
}

// proposes reports whether the new revision names a host for a repository that the base does not.
func (w *walker) proposes(repository *unstructured.Unstructured) bool {
	before, err := w.base.find(controllers.IDOf(repository.Object))
	return err != nil || !build.SameHost(before, repository)
}

// chart is the location of the chart of a HelmRelease.
type chart struct {
	source controllers.ID
	// names are the chart and the files with values, in the source.
	names []string
	// spec is that of the HelmChart, or nil if the source is the chart.
	spec map[string]any
}

// chartOf returns the chart of a HelmRelease. It returns false if the HelmChart is not in the repository, or is invalid.
func chartOf(s *side, hr *unstructured.Unstructured) (chart, bool) {
	spec, _, _ := unstructured.NestedMap(hr.Object, "spec", "chart", "spec")
	namespace := hr.GetNamespace()
	if referred, ok, _ := unstructured.NestedStringMap(hr.Object, "spec", "chartRef"); ok {
		ref := inNamespace(referred, namespace)
		if _, err := s.content(ref); err == nil || ref.Kind != "HelmChart" {
			return chart{source: ref, names: []string{"."}}, true
		}
		o, err := s.find(ref)
		if err != nil {
			return chart{}, false
		}
		spec, _, _ = unstructured.NestedMap(o.Object, "spec")
		namespace = ref.Namespace
	}
	var part struct {
		Chart       string            `json:"chart"`
		ValuesFiles []string          `json:"valuesFiles"`
		SourceRef   map[string]string `json:"sourceRef"`
	}
	text, err := yaml.Marshal(spec)
	if err != nil || yaml.Unmarshal(text, &part) != nil {
		return chart{}, false
	}
	return chart{inNamespace(part.SourceRef, namespace), append([]string{part.Chart}, part.ValuesFiles...), spec}, true
}

// inNamespace returns the object that a reference names.
func inNamespace(reference map[string]string, namespace string) controllers.ID {
	return controllers.FluxID(reference["kind"], cmp.Or(reference["namespace"], namespace), reference["name"])
}

// sameRelease reports whether a HelmRelease renders to the same objects on both sides.
func (w *walker) sameRelease(p pair) bool {
	if !equality.Semantic.DeepEqual(p.base.Object, p.head.Object) || !w.sameReferences(p.head) {
		return false
	}
	was, wasOK := chartOf(w.base, p.base)
	is, isOK := chartOf(w.head, p.head)
	if !wasOK || !isOK || !equality.Semantic.DeepEqual(was.spec, is.spec) {
		return false
	}
	for _, name := range is.names {
		same, local := w.sameFolder(is.source, name)
		if !local {
			o, same := w.sameObject(is.source)
			return same && o != nil
		}
		if !same {
			return false
		}
	}
	return true
}

// sameObject reports whether a source has the same spec on both sides.
func (w *walker) sameObject(ref controllers.ID) (*unstructured.Unstructured, bool) {
	was, wasErr := w.base.find(ref)
	is, isErr := w.head.find(ref)
	if wasErr != nil || isErr != nil {
		return nil, wasErr != nil && isErr != nil
	}
	return is, equality.Semantic.DeepEqual(was.Object["spec"], is.Object["spec"])
}

// sameFolder reports whether a chart in this repository, with its dependencies, is the same on
// both sides.
func (w *walker) sameFolder(source controllers.ID, name string) (same, local bool) {
	was, wasErr := w.base.content(source)
	is, isErr := w.head.content(source)
	if wasErr != nil && isErr != nil {
		return false, false
	}
	if wasErr != nil || isErr != nil {
		return false, true
	}
	return newInputs(was, is).charts(clean(name)), true
}

// charts reports whether a chart and the charts that it depends on are the same in both trees.
func (r *inputs) charts(folder string) bool {
	if r.done[folder] {
		return true
	}
	r.done[folder] = true
	if same, _ := r.sameHash(folder); !same {
		return false
	}
	text, err := fs.ReadFile(r.head, path.Join(folder, "Chart.yaml"))
	if err != nil {
		return true // an archive, or an error for Helm to report
	}
	dependencies, err := build.LocalCharts("Chart.yaml", text)
	return err == nil && !slices.ContainsFunc(dependencies, func(d string) bool { return !r.charts(clean(path.Join(folder, d))) })
}
