package charts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// labeled post-renders manifests and hooks by spec.postRenderStrategy: together, separately, or the
// manifests only.
func (s *releaseSpec) labeled(ctx context.Context, limits *build.Bounds, hr *unstructured.Unstructured, rendered *Rendered) ([]build.Object, error) {
	streams, raw := [][]string{append(slices.Clone(rendered.Manifests), rendered.Hooks...)}, []string(nil)
	switch s.PostRenderStrategy {
	case "separate":
		streams = [][]string{rendered.Manifests, rendered.Hooks}
	case "nohooks":
		streams, raw = [][]string{rendered.Manifests}, rendered.Hooks
	}
	var all []build.Object
	for _, stream := range streams {
		objects, err := postRendered(ctx, limits, stream, s)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			own(&o, hr, s.CommonMetadata.Labels)
			if len(s.CommonMetadata.Annotations) > 0 {
				o.SetAnnotations(build.Merged(o.GetAnnotations(), s.CommonMetadata.Annotations))
			}
			all = append(all, o)
		}
	}
	hooks, err := postRendered(ctx, limits, raw, &releaseSpec{})
	for _, o := range hooks {
		o.Owner = controllers.IDOf(hr.Object)
		all = append(all, o)
	}
	return all, err
}

// own adds the labels of the HelmRelease that owns the object.
func own(o *build.Object, hr *unstructured.Unstructured, common map[string]string) {
	o.Owner = controllers.IDOf(hr.Object)
	origin := map[string]string{helmToolkit + "/name": hr.GetName(), helmToolkit + "/namespace": hr.GetNamespace()}
	o.SetLabels(build.Merged(o.GetLabels(), common, origin))
}

// postRendered runs documents through kustomize with the patches and images of each entry of
// spec.postRenderers in order.
func postRendered(ctx context.Context, limits *build.Bounds, documents []string, spec *releaseSpec) ([]build.Object, error) {
	var nonEmpty []string
	for _, document := range documents {
		if strings.TrimSpace(document) != "" {
			nonEmpty = append(nonEmpty, strings.TrimSuffix(document, "\n")+"\n")
		}
	}
	if len(nonEmpty) == 0 {
		return nil, nil
	}
	text := []byte(strings.Join(nonEmpty, "---\n"))
	objects, err := limits.Kustomize(ctx, text, &kustomize.Kustomization{})
	for i, renderer := range spec.PostRenderers {
		if err != nil || renderer.Kustomize == nil {
			continue
		}
		k := &kustomize.Kustomization{Images: renderer.Kustomize.Images}
		for _, p := range renderer.Kustomize.Patches {
			k.Patches = append(k.Patches, p.Kustomize())
		}
		if text, err = marshalAll(objects); err != nil {
			return nil, err
		}
		if objects, err = limits.Kustomize(ctx, text, k); err != nil {
			return nil, fmt.Errorf("spec.postRenderers[%d]: %w", i, err)
		}
	}
	return objects, err
}

func marshalAll(objects []build.Object) ([]byte, error) {
	var all []byte
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		all = append(append(all, "---\n"...), text...)
	}
	return all, nil
}
