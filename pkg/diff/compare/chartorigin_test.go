package compare

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestChartOrigin(t *testing.T) {
	t.Parallel()
	spec := func(ref map[string]any) map[string]any {
		return map[string]any{"url": "oci://registry.example.com/web", "interval": "10m", "ref": ref}
	}
	hr := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "apps", "name": "web"},
		"spec":     map[string]any{"chart": map[string]any{"kind": "OCIRepository", "spec": spec(map[string]any{"tag": "1.0.0"})}},
	}}
	origin := chartOriginOf(hr)
	want := controllers.FluxID("OCIRepository", "apps", "apps-web")
	if origin.object != want || origin.source != want {
		t.Errorf("got %v of %v, want %v", origin.object, origin.source, want)
	}
	for name, test := range map[string]struct {
		live map[string]any
		want bool
	}{
		"the same":         {spec(map[string]any{"tag": "1.0.0"}), true},
		"another tag":      {spec(map[string]any{"tag": "1.0.1"}), false},
		"a range":          {spec(map[string]any{"semver": "1.0.0"}), false},
		"no reference":     {map[string]any{"url": "oci://registry.example.com/web"}, false},
		"another address":  {map[string]any{"url": "oci://registry.example.com/web2", "ref": map[string]any{"tag": "1.0.0"}}, false},
		"another interval": {map[string]any{"url": "oci://registry.example.com/web", "interval": "1m", "ref": map[string]any{"tag": "1.0.0"}}, true},
		"another layer": {map[string]any{
			"url": "oci://registry.example.com/web", "ref": map[string]any{"tag": "1.0.0"}, "layerSelector": map[string]any{"operation": "copy"},
		}, false},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{"spec": test.live}}
		if got := matchesTemplate(origin.template, live); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
