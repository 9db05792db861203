package install

import (
	"slices"
	"testing"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
)

func TestPermissionsOfInstallAreDistinct(t *testing.T) {
	t.Parallel()
	set, err := manifests.Render(manifests.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	all := kube.ApplyPermissions(set.Unstructured(), []string{"create", "patch"}, map[string][]string{"Namespace": {"create", "list"}})
	for i, p := range all {
		if slices.Contains(all[:i], p) {
			t.Errorf("%s is asked for twice", p)
		}
	}
}
