package helm

import (
	"context"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
)

// templates renders a chart. The lookup function of its templates finds objects if the release has a finder.
func templates(ctx context.Context, c *chart.Chart, values common.Values, release *charts.Release) (map[string]string, error) {
	if release.Find == nil {
		return engine.Engine{CustomTemplateFuncs: observed(ctx, release.Reverse)}.Render(c, values)
	}
	return engine.RenderWithClientProvider(c, values, provider{ctx, release.Find})
}

// provider is the cluster for the lookup function of templates.
type provider struct {
	ctx  context.Context
	find build.Finder
}

// GetClientFor implements engine.ClientProvider. It reports every kind as namespaced: only the
// finder knows the scope of a kind.
func (p provider) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return &finder{provider: p, wanted: build.Wanted{APIVersion: apiVersion, Kind: kind}}, true, nil
}

// finder reads the objects of a kind. All other operations are unsupported.
type finder struct {
	dynamic.NamespaceableResourceInterface
	provider
	wanted build.Wanted
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (f *finder) Namespace(namespace string) dynamic.ResourceInterface {
	in := *f
	in.wanted.Namespace = namespace
	return &in
}

// Get implements dynamic.ResourceInterface.
func (f *finder) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	wanted := f.wanted
	wanted.Name = name
	found, err := f.find(f.ctx, wanted)
	if err == nil && found == nil {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: wanted.Kind}, name)
	}
	return &unstructured.Unstructured{Object: found}, err
}

// List implements dynamic.ResourceInterface.
func (f *finder) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	found, err := f.find(f.ctx, f.wanted)
	list := &unstructured.UnstructuredList{}
	if err == nil && found != nil {
		list.SetUnstructuredContent(found)
	}
	return list, err
}
