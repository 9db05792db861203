package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ClusterFinder returns a finder for the lookup function of chart templates.
func ClusterFinder(client *kube.Client) build.Finder {
	kinds := kube.NewKinds(client)
	return func(ctx context.Context, wanted build.Wanted) (map[string]any, error) {
		gv, err := schema.ParseGroupVersion(wanted.APIVersion)
		if err != nil {
			return nil, fmt.Errorf("looking up %s: %w", wanted.Kind, err)
		}
		r, served, err := kinds.Find(ctx, gv.WithKind(wanted.Kind))
		if err != nil {
			return nil, err
		}
		if !served { // helm-controller fails too
			return nil, fmt.Errorf("looking up %s: the cluster does not serve this kind in %s", wanted.Kind, wanted.APIVersion)
		}
		if wanted.Name == "" {
			return listOf(ctx, client, r, wanted.Namespace)
		}
		found, err := client.Get(ctx, r, wanted.Namespace, wanted.Name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("looking up %s %q: %w", wanted.Kind, wanted.Name, err)
		}
		return found, nil
	}
}

// listOf returns the objects of a kind as a Kubernetes List.
func listOf(ctx context.Context, client *kube.Client, r kube.Resource, namespace string) (map[string]any, error) {
	items := []any{}
	_, err := client.List(ctx, r, kube.Selection{Namespace: namespace}, func(o controllers.Object) error {
		items = append(items, o)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", r.Kind, err)
	}
	return map[string]any{"apiVersion": r.GroupVersion().String(), "kind": r.Kind + "List", "items": items}, nil
}

// AssumedKubernetes is the Kubernetes version of the chart capabilities if no cluster is accessed:
// the version of the client libraries, as in Helm.
const AssumedKubernetes = "v1.36.0"

// HelmOptions are the options for rendering HelmReleases.
type HelmOptions struct {
	// KubeVersion and APIVersions are the chart capabilities, "" for the cluster's capabilities.
	KubeVersion string
	APIVersions []string
	// Hooks and CRDs select the objects that Shown returns in addition to the release.
	Hooks, CRDs bool
}

// ChartOptions override the chart and the values of a HelmRelease.
type ChartOptions struct {
	Chart  string
	Values []string
}

// Shown returns the objects of result that the options select for output.
func (o *HelmOptions) Shown(result *charts.Result) []build.Object {
	var objects []build.Object
	if o.CRDs {
		objects = append(objects, result.CRDs...)
	}
	objects = append(objects, result.Objects...)
	if o.Hooks {
		objects = append(objects, result.Hooks...)
	}
	for _, object := range objects {
		if object.GetNamespace() == "" && namespaced(object, result) {
			object.SetNamespace(result.Namespace) // as helm-controller applies it
		}
	}
	return objects
}

// namespaced reports whether an object has a namespaced kind: a Kubernetes or Flux kind, or a kind
// of a CRD in the release. The scope of other kinds is available only on the cluster.
func namespaced(o build.Object, result *charts.Result) bool {
	gvk := o.GroupVersionKind()
	of, known := build.Scope(gvk)
	if _, flux := controllers.KindOf(gvk.Group, gvk.Kind); flux || known && of {
		return true
	}
	return slices.ContainsFunc(slices.Concat(result.CRDs, result.Objects), func(crd build.Object) bool {
		field := func(path ...string) string {
			value, _, _ := unstructured.NestedString(crd.Object, append([]string{"spec"}, path...)...)
			return value
		}
		return crd.GetKind() == "CustomResourceDefinition" && field("group") == gvk.Group && field("names", "kind") == gvk.Kind && field("scope") == "Namespaced"
	})
}

// Override applies the chart and the values to options.
func (o *ChartOptions) Override(options *charts.Options) error {
	if o.Chart != "" {
		absolute, err := filepath.Abs(o.Chart)
		if err != nil {
			return fmt.Errorf("finding %s: %w", o.Chart, err)
		}
		work, err := git.Around(filepath.Dir(absolute))
		if err != nil {
			return err
		}
		inside, err := work.Inside(absolute)
		if err != nil {
			return err
		}
		if options.Chart, err = charts.ChartIn(work.Tree(), inside); err != nil {
			return fmt.Errorf("reading the chart %s: %w", o.Chart, err)
		}
		options.Chart.Access = charts.Access{Public: options.Untrusted != nil, Hosts: options.Hosts}
	}
	for _, file := range o.Values {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the values: %w", err)
		}
		var values map[string]any
		if err := budget.Unmarshal("", text, &values); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		options.Values = charts.MergeValues(options.Values, values)
	}
	return nil
}

// HelmBuild returns the options for rendering HelmReleases.
func (b *Builder) HelmBuild(ctx context.Context, h *HelmOptions, work git.Workspace) (*charts.Options, error) {
	renderer, err := b.Charts()
	if err != nil {
		return nil, err
	}
	options := &charts.Options{
		Renderer: renderer, Lookup: b.lookup(work), Missing: b.missing("values", "--values"), KubeVersion: h.KubeVersion, APIVersions: slices.Clone(h.APIVersions), Login: b.Login.For(b.Provider),
		Kustomizer: b.Kustomizer, Hosts: b.Hosts,
	}
	options.Find = func(ctx context.Context, object controllers.ID) (*unstructured.Unstructured, error) {
		return b.findSource(ctx, work, object)
	}
	if options.Sources, err = b.SourcesWithRemotes(work, nil); err != nil {
		return nil, err
	}
	if !b.DryRun {
		err := b.capabilities(ctx, options)
		if find := options.Live; b.Untrusted && find != nil {
			options.Live = func(ctx context.Context, wanted build.Wanted) (map[string]any, error) {
				if wanted.Kind == controllers.Secret {
					return nil, nil
				}
				return find(ctx, wanted)
			}
		}
		return options, err
	}
	options.KubeVersion = cmp.Or(options.KubeVersion, AssumedKubernetes)
	options.Untrusted = func(context.Context, *unstructured.Unstructured) bool { return true } // all files come from the repository
	return options, nil
}

// capabilities reads the chart capabilities from the cluster.
func (b *Builder) capabilities(ctx context.Context, options *charts.Options) error {
	client, err := b.Connect()
	if err != nil {
		return err
	}
	options.Live = ClusterFinder(client)
	if options.KubeVersion == "" {
		version, err := client.Discovery().ServerVersion(ctx)
		if err != nil {
			return err
		}
		options.KubeVersion = "v" + version.String()
	}
	served, err := client.Discovery().APIs(ctx)
	options.APIVersions = append(options.APIVersions, served...)
	return err
}

// ExplainHelm adds a remedy to a rendering error.
func ExplainHelm(err error) error {
	var source *charts.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		return hint.Errorf(fmt.Sprintf("set the chart with --chart, or the directory of the source with --local-sources %s=PATH", hint.Quote(source.Source.String())), "%w", err)
	}
	var values *build.VariablesError
	if errors.As(err, &values) && errors.Is(err, build.ErrNotFound) {
		return hint.Errorf("create it, mark it optional in the spec, or build with --dry-run and set the values with --values", "%w", err)
	}
	return err
}

// PreferBuilt makes options resolve sources, ConfigMaps and Secrets from the
// build before any other place.
func PreferBuilt(options *charts.Options, result *build.Result) {
	built := result.Unstructured()
	options.Lookup = build.Lookups(result.Lookup(build.DataOf), options.Lookup)
	find := options.Find
	if options.Untrusted == nil {
		options.Untrusted = func(ctx context.Context, repository *unstructured.Unstructured) bool {
			if repository == nil || !slices.Contains(built, repository) {
				return repository == nil
			}
			before, err := find(ctx, controllers.IDOf(repository.Object))
			return err != nil || !charts.SameHost(before, repository)
		}
	}
	options.Find = func(ctx context.Context, wanted controllers.ID) (*unstructured.Unstructured, error) {
		for _, o := range result.Objects {
			if controllers.IDOf(o.Unstructured.Object) == wanted {
				o.Depend(ctx)
				return o.Unstructured, nil
			}
		}
		return find(ctx, wanted)
	}
}
