package install

import (
	"slices"
	"testing"

	"github.com/fluxkit/flux/manifests"
)

func TestPermissionsOfInstallAreDistinct(t *testing.T) {
	t.Parallel()
	set, err := manifests.Render(manifests.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	all := permissionsFor(set.Unstructured(), []string{"create", "patch"})
	for i, p := range all {
		if slices.Contains(all[:i], p) {
			t.Errorf("%s is asked for twice", p)
		}
	}
}
