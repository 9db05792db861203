package charts_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
)

// recorded is a renderer that records the charts.
type recorded struct{ charts []charts.Chart }

func (r *recorded) Render(_ context.Context, release charts.Release) (*charts.Rendered, error) {
	r.charts = append(r.charts, release.Chart)
	return &charts.Rendered{}, nil
}

// TestReconcileStrategy checks that the revision of the source is part of the chart's version only
// with the strategy Revision, and the generation of the HelmChart only with values files, as
// source-controller sets it.
func TestReconcileStrategy(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"chart/Chart.yaml": &fstest.MapFile{Data: []byte("name: web")}, "values.yaml": &fstest.MapFile{Data: []byte("from: root")},
	}
	const revision = "main@sha1:0123456789abcdef0123456789abcdef01234567"
	for _, test := range []struct {
		strategy, revision, files string
		generation                int64
		want                      string
		values                    int
	}{
		{strategy: "Revision", revision: revision, want: "0123456789ab"},
		{strategy: "Revision", revision: "sha256:fedcba9876543210", want: "fedcba987654"},
		{strategy: "Revision"},
		{strategy: "Revision", revision: revision, generation: 3, want: "0123456789ab"},
		{strategy: "Revision", revision: revision, files: "values.yaml", generation: 3, want: "0123456789ab.3", values: 1},
		{strategy: "ChartVersion", revision: revision},
		{strategy: "ChartVersion", revision: revision, files: "./values.yaml, none.yaml", generation: 3, want: "3", values: 1},
		{strategy: "ChartVersion", revision: revision, files: "chart/values.yaml"},
	} {
		hr := &unstructured.Unstructured{}
		text := `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: web, namespace: apps},
spec: {chart: {spec: {chart: ./chart, reconcileStrategy: ` + test.strategy + `, valuesFiles: [` + test.files + `], ignoreMissingValuesFiles: true, sourceRef: {kind: GitRepository, name: fleet}}}}}`
		if err := yaml.Unmarshal([]byte(text), &hr.Object); err != nil {
			t.Fatal(err)
		}
		renderer := &recorded{}
		_, err := charts.HelmRelease(t.Context(), hr, charts.Options{
			Renderer: renderer, Sources: func(context.Context, controllers.ID) (fs.FS, error) { return tree, nil },
			SourceRevision: func(context.Context, controllers.ID) string { return test.revision }, ChartGeneration: test.generation,
		})
		if err != nil {
			t.Fatal(err)
		}
		chart := renderer.charts[0]
		if chart.Build != test.want || len(chart.Values) != test.values || chart.ReplaceValues != (test.files != "") {
			t.Errorf("%+v: build metadata %q, %d values files, replacing %t", test, chart.Build, len(chart.Values), chart.ReplaceValues)
		}
	}
}
