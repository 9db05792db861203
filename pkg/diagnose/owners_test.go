package diagnose

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// TestContestNamesTheAnnotationOfEachOwner checks that the annotation that keeps an object belongs
// to the controller that would delete it: each controller ignores the annotation of the other.
func TestContestNamesTheAnnotationOfEachOwner(t *testing.T) {
	t.Parallel()
	const (
		prune = "kustomize.toolkit.fluxcd.io/prune: disabled"
		keep  = "helm.sh/resource-policy: keep"
	)
	object := controllers.ID{Kind: "ConfigMap", Namespace: "apps", Name: "settings"}
	ks := func(name string) controllers.ID {
		return controllers.FluxID("Kustomization", "apps", name)
	}
	hr := func(name string) controllers.ID {
		return controllers.FluxID("HelmRelease", "apps", name)
	}
	for name, c := range map[string]struct {
		owner controllers.ID
		other controllers.ID
		want  map[string]string
	}{
		"two Kustomizations":             {ks("a"), ks("b"), map[string]string{"Kustomization/apps/a": prune, "Kustomization/apps/b": prune}},
		"two HelmReleases":               {hr("a"), hr("b"), map[string]string{"HelmRelease/apps/a": keep, "HelmRelease/apps/b": keep}},
		"a Kustomization, a HelmRelease": {ks("a"), hr("b"), map[string]string{"Kustomization/apps/a": prune, "HelmRelease/apps/b": keep}},
		"a HelmRelease, a Kustomization": {hr("a"), ks("b"), map[string]string{"HelmRelease/apps/a": keep, "Kustomization/apps/b": prune}},
	} {
		f := contest(c.owner, object, []controllers.ID{c.other}).Root
		for applier, annotation := range c.want {
			found := false
			for _, remedy := range f.Remedies {
				if strings.Contains(remedy, "source of "+applier+",") {
					found = strings.Contains(remedy, annotation)
				}
			}
			if !found {
				t.Errorf("%s: no remedy has %q for %s: %q", name, annotation, applier, f.Remedies)
			}
		}
	}
}

// TestRemediesNameNoAnnotationOfAnotherController checks that no remedy names an annotation of
// another controller, which the controller of the kind ignores.
func TestRemediesNameNoAnnotationOfAnotherController(t *testing.T) {
	t.Parallel()
	foreign := map[string]string{"HelmRelease": "kustomize.toolkit.fluxcd.io/", "Kustomization": "helm.sh/"}
	for _, message := range []string{
		`Helm upgrade failed for release apps/web with chart app@0.2.0: conflict occurred while applying object apps/web apps/v1, Kind=Deployment: Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`,
		`Deployment/apps/web dry-run failed (FieldManagerConflict): Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`,
	} {
		for kind, word := range foreign {
			found, ok := recognize(failing(t, kind, "UpgradeFailed", message, ""))
			if !ok || found.Code != "conflict" {
				t.Fatalf("%s: %s is %q: %+v", kind, message, found.Code, failure.Parse(message))
			}
			if text := strings.Join(found.Remedies, "\n"); strings.Contains(text, word) {
				t.Errorf("%s: %s", kind, text)
			}
		}
	}
}

// TestLockedReleaseIsNotForced checks that a locked release is not forced: the operation may be
// running, and helm-controller recovers a release after an interrupted operation itself.
func TestLockedReleaseIsNotForced(t *testing.T) {
	t.Parallel()
	s := failing(t, "HelmRelease", "UpgradeFailed", `Helm upgrade failed for release web/web-app with chart app@0.2.0: another operation (install/upgrade/rollback) is in progress`,
		`{"targetNamespace": "web", "storageNamespace": "helm"}`)
	found, ok := recognize(s)
	if !ok || found.Code != "release-locked" {
		t.Fatalf("code %q", found.Code)
	}
	encoded, err := json.Marshal(found.Remedies)
	if err != nil {
		t.Fatal(err)
	}
	text := string(encoded)
	if strings.Contains(text, "--force") || !strings.Contains(text, "helm history web-app -n helm") {
		t.Error(text)
	}
}
