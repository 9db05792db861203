package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/controllers"
)

func TestImageTag(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, image := range []string{"ghcr.io/fluxcd/a:v1", "localhost:5000/a", "localhost:5000/a:v1@sha256:00", "a@sha256:00"} {
		got[image] = controllers.ImageTag(image)
	}
	want := map[string]string{"ghcr.io/fluxcd/a:v1": "v1", "localhost:5000/a": "", "localhost:5000/a:v1@sha256:00": "v1", "a@sha256:00": "sha256:00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
