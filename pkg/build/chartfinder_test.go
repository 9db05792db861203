package build_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/fluxkit/flux/pkg/build"
)

// recorded is a renderer that records the charts.
type recorded struct{ charts []build.Chart }

func (r *recorded) Render(_ context.Context, release build.Release) (*build.Rendered, error) {
	r.charts = append(r.charts, release.Chart)
	return &build.Rendered{}, nil
}

// TestReconcileStrategy checks that the revision of the source is part of the chart's version only
// with the strategy Revision, as source-controller sets it.
func TestReconcileStrategy(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"chart/Chart.yaml": &fstest.MapFile{Data: []byte("name: web")}}
	for _, test := range []struct{ strategy, revision, want string }{
		{"Revision", "main@sha1:0123456789abcdef0123456789abcdef01234567", "0123456789ab"},
		{"Revision", "sha256:fedcba9876543210", "fedcba987654"},
		{"Revision", "", ""},
		{"ChartVersion", "main@sha1:0123456789abcdef0123456789abcdef01234567", ""},
	} {
		hr := object(t, `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: web, namespace: apps},
spec: {chart: {spec: {chart: ./chart, reconcileStrategy: `+test.strategy+`, sourceRef: {kind: GitRepository, name: fleet}}}}}`)
		renderer := &recorded{}
		_, err := build.HelmRelease(t.Context(), hr, build.HelmOptions{
			Renderer: renderer, Sources: func(context.Context, build.Reference) (fs.FS, error) { return tree, nil },
			SourceRevision: func(context.Context, build.Reference) string { return test.revision },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := renderer.charts[0].Build; got != test.want {
			t.Errorf("%s at %q: build metadata %q, want %q", test.strategy, test.revision, got, test.want)
		}
	}
}
