package revision

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/diff"
)

// release compares the objects that a HelmRelease installs.
func (w *walker) release(p pair, kept bool) {
	w.followed++
	if p.base != nil && p.head != nil && !w.All && w.sameRelease(p) {
		return
	}
	revision := 1
	if p.base != nil && p.head != nil {
		revision = 2 // render both sides as an upgrade, so that only the change differs
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
}

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
	twin := s.objects[build.ReferenceTo(hr)].Twin
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
	before, err := w.base.find(build.ReferenceTo(repository))
	return err != nil || !build.SameHost(before, repository)
}

// chartPart holds the fields of a HelmRelease or HelmChart that locate a chart.
type chartPart struct {
	Chart       string                                 `json:"chart"`
	ValuesFiles []string                               `json:"valuesFiles"`
	SourceRef   struct{ Kind, Name, Namespace string } `json:"sourceRef"`
}

// sameRelease reports whether a HelmRelease renders to the same objects on both sides.
func (w *walker) sameRelease(p pair) bool {
	if !equality.Semantic.DeepEqual(p.base.Object, p.head.Object) || !w.sameReferences(p.head) {
		return false
	}
	if referred, ok, _ := unstructured.NestedStringMap(p.head.Object, "spec", "chartRef"); ok {
		source := build.Reference{Kind: referred["kind"], Namespace: referred["namespace"], Name: referred["name"]}
		if source.Namespace == "" {
			source.Namespace = p.head.GetNamespace()
		}
		return w.sameChartObject(source)
	}
	part, _, _ := unstructured.NestedMap(p.head.Object, "spec", "chart", "spec")
	return w.sameChart(part, p.head.GetNamespace())
}

// sameObject reports whether a source has the same spec on both sides.
func (w *walker) sameObject(ref build.Reference) (*unstructured.Unstructured, bool) {
	was, wasErr := w.base.find(ref)
	is, isErr := w.head.find(ref)
	if wasErr != nil || isErr != nil {
		return nil, wasErr != nil && isErr != nil
	}
	return is, equality.Semantic.DeepEqual(was.Object["spec"], is.Object["spec"])
}

// sameChartObject reports whether the object in spec.chartRef has the same chart on both sides.
func (w *walker) sameChartObject(ref build.Reference) bool {
	if same, local := w.sameFolder(ref, "."); local {
		return same
	}
	o, same := w.sameObject(ref)
	if !same || o == nil || ref.Kind != "HelmChart" {
		return same && o != nil
	}
	part, _, _ := unstructured.NestedMap(o.Object, "spec")
	return w.sameChart(part, ref.Namespace)
}

// sameChart reports whether a source has the same chart on both sides.
func (w *walker) sameChart(spec map[string]any, namespace string) bool {
	text, err := yaml.Marshal(spec)
	var part chartPart
	if err != nil || yaml.Unmarshal(text, &part) != nil {
		return false
	}
	source := build.Reference{Kind: part.SourceRef.Kind, Namespace: part.SourceRef.Namespace, Name: part.SourceRef.Name}
	if source.Namespace == "" {
		source.Namespace = namespace
	}
	for _, name := range append([]string{part.Chart}, part.ValuesFiles...) {
		same, local := w.sameFolder(source, name)
		if !local {
			o, same := w.sameObject(source)
			return same && o != nil
		}
		if !same {
			return false
		}
	}
	return true
}

// sameFolder reports whether a chart in this repository, with its dependencies, is the same on
// both sides.
func (w *walker) sameFolder(source build.Reference, name string) (same, local bool) {
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
	var metadata struct {
		Dependencies []struct {
			Repository string `json:"repository"`
		} `json:"dependencies"`
	}
	if budget.Unmarshal("Chart.yaml", text, &metadata) != nil {
		return false
	}
	for _, d := range metadata.Dependencies {
		if relative, ok := strings.CutPrefix(d.Repository, "file://"); ok && !r.charts(clean(path.Join(folder, relative))) {
			return false
		}
	}
	return true
}
