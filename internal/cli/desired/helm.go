package desired

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/shell"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ClusterFinder returns a finder for the lookup function of chart templates.
func ClusterFinder(client *kube.Client) build.Finder {
	var mu sync.Mutex
	known := map[schema.GroupVersion]map[string]kube.Resource{}
	kinds := func(ctx context.Context, gv schema.GroupVersion) (map[string]kube.Resource, error) {
		mu.Lock()
		defer mu.Unlock()
		if found, ok := known[gv]; ok {
			return found, nil
		}
		found, err := client.Discovery().Kinds(ctx, gv)
		if err == nil {
			known[gv] = found
		}
		return found, err
	}
	return func(ctx context.Context, wanted build.Wanted) (map[string]any, error) {
		gv, err := schema.ParseGroupVersion(wanted.APIVersion)
		if err != nil {
			return nil, fmt.Errorf("looking up %s: %w", wanted.Kind, err)
		}
		served, err := kinds(ctx, gv)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the kinds of %s: %w", gv, err)
		}
		r, ok := served[wanted.Kind]
		if !ok { // helm-controller fails too
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

// AssumedKubernetes is the Kubernetes version in chart capabilities when no
// cluster is accessed: the version of the client libraries, as in Helm.
const AssumedKubernetes = "v1.36.0"

// HelmOptions are the flags of commands that render HelmReleases.
type HelmOptions struct {
	KubeVersion string
	APIVersions []string
	hooks       bool
	crds        bool
}

// Add adds the flags to fs.
func (o *HelmOptions) Add(fs *pflag.FlagSet) {
	o.AddCapabilities(fs)
	fs.BoolVar(&o.hooks, "hooks", false, "also print chart hooks")
	fs.BoolVar(&o.crds, "crds", true, "print the CRDs of charts")
}

// AddCapabilities adds the flags for chart capabilities to fs.
func (o *HelmOptions) AddCapabilities(fs *pflag.FlagSet) {
	fs.StringVar(&o.KubeVersion, "kube-version", "", "Kubernetes version for chart capabilities (default: version of the cluster, or "+AssumedKubernetes+" with --dry-run)")
	fs.StringSliceVar(&o.APIVersions, "api-versions", nil, "additional API versions for chart capabilities, e.g. monitoring.coreos.com/v1")
}

// ChartOptions are the flags that override the chart and values of a
// HelmRelease.
type ChartOptions struct {
	Chart  string
	Values []string
}

// Add adds the flags to fs.
func (o *ChartOptions) Add(fs *pflag.FlagSet) {
	fs.StringVar(&o.Chart, "chart", "", "chart directory or archive to render instead of the chart of the HelmRelease")
	fs.StringArrayVar(&o.Values, "values", nil, "values file that overrides the values of the HelmRelease (repeatable)")
}

// Shown returns the objects of result that the flags select for output.
func (o *HelmOptions) Shown(result *build.HelmResult) []build.Object {
	var objects []build.Object
	if o.crds {
		objects = append(objects, result.CRDs...)
	}
	objects = append(objects, result.Objects...)
	if o.hooks {
		objects = append(objects, result.Hooks...)
	}
	for _, object := range objects {
		if object.GetNamespace() == "" && namespaced(object, result) {
			object.SetNamespace(result.Namespace) // as helm-controller applies it
		}
	}
	return objects
}

// namespaced reports whether an object is of a namespaced kind of Kubernetes, of
// Flux or of a CRD of the release. The scope of other kinds is known only to the
// cluster.
func namespaced(o build.Object, result *build.HelmResult) bool {
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

// Override applies the chart and values of the command line to options.
func (o *ChartOptions) Override(options *build.HelmOptions) error {
	if o.Chart != "" {
		absolute, err := filepath.Abs(o.Chart)
		if err != nil {
			return fmt.Errorf("finding %s: %w", o.Chart, err)
		}
		work, err := workspace.Around(filepath.Dir(absolute))
		if err != nil {
			return err
		}
		inside, err := work.Inside(absolute)
		if err != nil {
			return err
		}
		if options.Chart, err = build.ChartIn(work.Tree(), inside); err != nil {
			return fmt.Errorf("reading the chart %s: %w", o.Chart, err)
		}
		options.Chart.Access = build.Access{Public: options.Untrusted != nil, Hosts: options.Hosts}
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
		options.Values = build.MergeValues(options.Values, values)
	}
	return nil
}

// HelmRenderer returns the helper process that renders charts. It starts with
// the first chart and must be closed.
func HelmRenderer(a *app.App) (*isolated.Charts, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	return isolated.NewCharts(app.FindHelper, filepath.Join(cache, "flux", "charts"), a.Err), nil
}

// HelmBuild returns the options for rendering HelmReleases and the helper
// process, which starts with the first chart and must be closed.
func HelmBuild(ctx context.Context, a *app.App, o *BuildOptions, h *HelmOptions, work workspace.WorkTree) (*build.HelmOptions, *isolated.Charts, error) {
	charts, err := HelmRenderer(a)
	if err != nil {
		return nil, nil, err
	}
	options := &build.HelmOptions{
		Renderer: charts, Lookup: lookupFor(a, o, work), Missing: missingFor(a, o, "values", "--values"), KubeVersion: h.KubeVersion, APIVersions: slices.Clone(h.APIVersions), Login: LoginFor(a, o.Provider),
	}
	if options.Kustomizer, err = a.Kustomizer(o.Remote); err != nil {
		return nil, nil, err
	}
	options.Find = func(ctx context.Context, object build.Reference) (*unstructured.Unstructured, error) {
		return findSource(ctx, a, o, work, object)
	}
	if options.Sources, err = SourcesWithRemotes(a, o, work, nil); err != nil {
		return nil, nil, err
	}
	options.Hosts = o.Remote.Hosts()
	if o.DryRun { // all comes from the repository
		options.Untrusted = func(context.Context, *unstructured.Unstructured) bool { return true }
	}
	if !o.DryRun {
		err = capabilities(ctx, a, options)
	} else if options.KubeVersion == "" {
		options.KubeVersion = AssumedKubernetes
	}
	return options, charts, err
}

// capabilities reads the chart capabilities from the cluster.
func capabilities(ctx context.Context, a *app.App, options *build.HelmOptions) error {
	client, err := a.Client()
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
	var source *build.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		return hint.Errorf(fmt.Sprintf("set the chart with --chart, or the directory of the source with --local-sources %s=PATH", shell.Quote(source.Source.String())), "%w", err)
	}
	var values *build.VariablesError
	if errors.As(err, &values) && errors.Is(err, build.ErrNotFound) {
		return hint.Errorf("create it, mark it optional in the spec, or build with --dry-run and set the values with --values", "%w", err)
	}
	return err
}

// PreferBuilt makes options resolve sources, ConfigMaps and Secrets from the
// build before any other place.
func PreferBuilt(options *build.HelmOptions, result *build.Result) {
	built := result.Unstructured()
	options.Lookup = build.Lookups(build.FromObjects(built), options.Lookup)
	find := options.Find
	if options.Untrusted == nil {
		options.Untrusted = func(ctx context.Context, repository *unstructured.Unstructured) bool {
			if repository == nil || !slices.Contains(built, repository) {
				return repository == nil
			}
			before, err := find(ctx, build.ReferenceTo(repository))
			return err != nil || !build.SameHost(before, repository)
		}
	}
	options.Find = func(ctx context.Context, wanted build.Reference) (*unstructured.Unstructured, error) {
		for _, o := range built {
			if o.GetKind() == wanted.Kind && o.GetNamespace() == wanted.Namespace && o.GetName() == wanted.Name {
				return o, nil
			}
		}
		return find(ctx, wanted)
	}
}
