package revision

import (
	"context"
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
func (w *walker) release(p pair, base, head ancestors, kept bool) {
	w.followed++
	if p.base != nil && p.head != nil && !w.All && w.sameRelease(p, base, head) {
		return
	}
	revision := 1
	if p.base != nil && p.head != nil {
		revision = 2 // render both sides as an upgrade, so that only the change differs
	}
	before, beforeOK := w.renderSide(w.base, p.base, base, revision)
	after, afterOK := w.renderSide(w.head, p.head, head, revision)
	if beforeOK && afterOK {
		w.found = append(w.found, diff.Desired{Before: before, After: after, Kept: kept})
	}
}

// renderSide renders one side. The side is nil, with true, if the HelmRelease does not exist
// there.
func (w *walker) renderSide(s *side, hr *unstructured.Unstructured, above ancestors, revision int) (*diff.Side, bool) {
	if hr == nil || w.ctx.Err() != nil {
		return nil, w.ctx.Err() == nil
	}
	result, err := build.HelmRelease(w.ctx, hr, build.HelmOptions{
		Renderer: w.Renderer, Kustomizer: w.Kustomizer, Lookup: s.lookup(above), Missing: w.missing("values", ""),
		KubeVersion: w.KubeVersion, APIVersions: w.APIVersions, Revision: revision,
		Find: func(ctx context.Context, o build.Reference) (*unstructured.Unstructured, error) {
			return s.find(ctx, o, above)
		},
		Sources: func(_ context.Context, source build.Reference) (fs.FS, error) { return s.source(w, source, above) },
	})
	if err != nil {
		w.fail(s, err)
		return nil, false
	}
	built := result.Result
	built.Objects = append(result.CRDs, built.Objects...)
	return &diff.Side{Owner: hr, Build: &built, Namespace: result.Namespace}, true
}

// chartPart holds the fields of a HelmRelease or HelmChart that locate a chart.
type chartPart struct {
	Chart       string                                 `json:"chart"`
	ValuesFiles []string                               `json:"valuesFiles"`
	SourceRef   struct{ Kind, Name, Namespace string } `json:"sourceRef"`
}

// sameRelease reports whether a HelmRelease renders to the same objects on both sides.
func (w *walker) sameRelease(p pair, base, head ancestors) bool {
	if !equality.Semantic.DeepEqual(p.base.Object, p.head.Object) || !w.sameValues(p.head, base, head) {
		return false
	}
	if referred, ok, _ := unstructured.NestedStringMap(p.head.Object, "spec", "chartRef"); ok {
		source := build.Reference{Kind: referred["kind"], Namespace: referred["namespace"], Name: referred["name"]}
		if source.Namespace == "" {
			source.Namespace = p.head.GetNamespace()
		}
		return w.sameChartObject(source, base, head)
	}
	part, _, _ := unstructured.NestedMap(p.head.Object, "spec", "chart", "spec")
	return w.sameChart(part, p.head.GetNamespace(), base, head)
}

func (w *walker) sameValues(hr *unstructured.Unstructured, base, head ancestors) bool {
	references, _, _ := unstructured.NestedSlice(hr.Object, "spec", "valuesFrom")
	for _, item := range references {
		m, _ := item.(map[string]any)
		kind, _ := m["kind"].(string)
		name, _ := m["name"].(string)
		if !w.sameData(build.Reference{Kind: kind, Namespace: hr.GetNamespace(), Name: name}, base, head) {
			return false
		}
	}
	return true
}

// sameObject reports whether a source has the same spec on both sides.
func (w *walker) sameObject(ref build.Reference, base, head ancestors) (*unstructured.Unstructured, bool) {
	was, wasErr := w.base.find(w.ctx, ref, base)
	is, isErr := w.head.find(w.ctx, ref, head)
	if wasErr != nil || isErr != nil {
		return nil, wasErr != nil && isErr != nil
	}
	return is, equality.Semantic.DeepEqual(was.Object["spec"], is.Object["spec"])
}

// sameChartObject reports whether the object in spec.chartRef has the same chart on both sides.
func (w *walker) sameChartObject(ref build.Reference, base, head ancestors) bool {
	if same, local := w.sameFolder(ref, ".", base, head); local {
		return same
	}
	o, same := w.sameObject(ref, base, head)
	if !same || o == nil || ref.Kind != "HelmChart" {
		return same
	}
	part, _, _ := unstructured.NestedMap(o.Object, "spec")
	return w.sameChart(part, ref.Namespace, base, head)
}

// sameChart reports whether a source has the same chart on both sides.
func (w *walker) sameChart(spec map[string]any, namespace string, base, head ancestors) bool {
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
		same, local := w.sameFolder(source, name, base, head)
		if !local {
			_, same = w.sameObject(source, base, head)
			return same
		}
		if !same {
			return false
		}
	}
	return true
}

// sameFolder reports whether a chart in this repository, with its dependencies, is the same on
// both sides.
func (w *walker) sameFolder(source build.Reference, name string, base, head ancestors) (same, local bool) {
	was, wasLocal := w.base.folder(w, source, base)
	is, isLocal := w.head.folder(w, source, head)
	if !wasLocal && !isLocal {
		return false, false
	}
	if was != is || wasLocal != isLocal {
		return false, true
	}
	return w.sameCharts(is, path.Join(is, clean(name)), map[string]bool{}), true
}

func (w *walker) sameCharts(root, folder string, seen map[string]bool) bool {
	if seen[folder] {
		return true
	}
	seen[folder] = true
	r := &inputs{w: w, root: root, done: map[string]bool{}}
	if same, _ := r.sameHash(folder); !same {
		return false
	}
	text, err := fs.ReadFile(w.head.Tree, path.Join(folder, "Chart.yaml"))
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
		if relative, ok := strings.CutPrefix(d.Repository, "file://"); ok && !w.sameCharts(root, clean(path.Join(folder, relative)), seen) {
			return false
		}
	}
	return true
}
