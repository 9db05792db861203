package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestKindsNamed(t *testing.T) {
	t.Parallel()
	for word, want := range map[string][]string{
		"ks": {"Kustomization"}, "Kustomization": {"Kustomization"}, "kustomizations.kustomize.toolkit.fluxcd.io": {"Kustomization"},
		"git": {"GitRepository"}, "gitrepository": {"GitRepository"}, "GitRepositories": {"GitRepository"}, "gitrepo": {"GitRepository"},
		"source/git": {"GitRepository"}, "source git": {"GitRepository"},
		"helm": {"HelmRepository"}, "chart": {"HelmChart"}, "hc": {"HelmChart"}, "hr": {"HelmRelease"},
		"provider": {"Provider"}, "alert-providers": {"Provider"}, "alert": {"Alert"},
		"images": {"ImageRepository", "ImagePolicy", "ImageUpdateAutomation"}, "artifact": {"ArtifactGenerator"},
		"nonsense": nil, "": nil,
	} {
		var got []string
		for _, k := range controllers.KindsNamed(word) {
			got = append(got, k.Kind)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", word, diff)
		}
	}
}

// TestEveryWordMeansOneKind finds words that match more than one row.
func TestEveryWordMeansOneKind(t *testing.T) {
	t.Parallel()
	for _, k := range controllers.Kinds {
		for _, word := range k.Words() {
			if rows := controllers.KindsNamed(word); len(rows) != 1 || rows[0].Kind != k.Kind {
				t.Errorf("%q of %s means %d kinds", word, k.Kind, len(rows))
			}
		}
	}
}

// TestIndefinite checks the articles of kinds and nouns.
func TestIndefinite(t *testing.T) {
	t.Parallel()
	for noun, want := range map[string]string{
		"Bucket": "a Bucket", "OCIRepository": "an OCIRepository", "HelmRelease": "a HelmRelease", "image policy": "an image policy", "Alert": "an Alert", "": "a ",
	} {
		if got := controllers.Indefinite(noun); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
