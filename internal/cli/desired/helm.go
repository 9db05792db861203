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
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/helmprocess"
	"github.com/fluxkit/flux/pkg/controllers"
)

// FinderIn finds the objects of a cluster that the templates of charts look up.
func FinderIn(client *kube.Client) build.Finder {
	var mu sync.Mutex
	known := map[schema.GroupVersion]map[string]kube.Resource{}
	kinds := func(ctx context.Context, gv schema.GroupVersion) (map[string]kube.Resource, error) {
		mu.Lock()
		defer mu.Unlock()
		if found, ok := known[gv]; ok {
			return found, nil
		}
		found, err := client.Kinds(ctx, gv)
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
			return nil, fmt.Errorf("asking for the kinds of %s: %w", gv, err)
		}
		r, ok := served[wanted.Kind]
		if !ok { // the controller fails with it, too
			return nil, fmt.Errorf("looking up %s: the cluster does not serve it in %s", wanted.Kind, wanted.APIVersion)
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

// listOf are the objects of a kind, as a list of the API.
func listOf(ctx context.Context, client *kube.Client, r kube.Resource, namespace string) (map[string]any, error) {
	items := []any{}
	_, err := client.List(ctx, r, kube.Selection{Namespace: namespace}, func(o controllers.Object) error {
		items = append(items, o)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking up every %s: %w", r.Kind, err)
	}
	return map[string]any{"apiVersion": r.GroupVersion().String(), "kind": r.Kind + "List", "items": items}, nil
}

// AssumedKubernetes is what charts see where no cluster is asked: the version
// of the client libraries, as in Helm.
const AssumedKubernetes = "v1.36.0"

// HelmOptions are the flags of all that builds HelmReleases.
type HelmOptions struct {
	KubeVersion string
	APIVersions []string
	hooks       bool
	crds        bool
}

// Add adds the flags.
func (o *HelmOptions) Add(fs *pflag.FlagSet) {
	o.AddCapabilities(fs)
	fs.BoolVar(&o.hooks, "hooks", false, "print the hooks of charts, too")
	fs.BoolVar(&o.crds, "crds", true, "print the definitions that charts bring")
}

// AddCapabilities adds what charts see of a cluster.
func (o *HelmOptions) AddCapabilities(fs *pflag.FlagSet) {
	fs.StringVar(&o.KubeVersion, "kube-version", "", "the version of Kubernetes that charts see (default the cluster's, or "+AssumedKubernetes+" where none is asked)")
	fs.StringSliceVar(&o.APIVersions, "api-versions", nil, "APIs that charts see besides, such as monitoring.coreos.com/v1")
}

// ChartOptions are the flags for what lies over a HelmRelease.
type ChartOptions struct {
	Chart  string
	Values []string
}

// Add adds the flags.
func (o *ChartOptions) Add(fs *pflag.FlagSet) {
	fs.StringVar(&o.Chart, "chart", "", "a folder or packed chart to render instead of the HelmRelease's")
	fs.StringArrayVar(&o.Values, "values", nil, "a file with values above those of the HelmRelease")
}

// Shown are the objects that the flags ask for.
func (o *HelmOptions) Shown(result *build.HelmResult) []build.Object {
	var objects []build.Object
	if o.crds {
		objects = append(objects, result.CRDs...)
	}
	objects = append(objects, result.Objects...)
	if o.hooks {
		objects = append(objects, result.Hooks...)
	}
	return objects
}

// Override lays what the command line has over what the release says.
func (o *ChartOptions) Override(options *build.HelmOptions) error {
	if o.Chart != "" {
		absolute, err := filepath.Abs(o.Chart)
		if err != nil {
			return fmt.Errorf("finding %s: %w", o.Chart, err)
		}
		work, err := WorkTreeAround(filepath.Dir(absolute))
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

// HelmRenderer is the program that renders charts. It is started when the
// first one is to be rendered, and has to be closed.
func HelmRenderer(a *app.App) (*helmprocess.Program, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache folder: %w", err)
	}
	return &helmprocess.Program{Cache: filepath.Join(cache, "flux", "charts"), Stderr: a.Err, Find: app.FindHelper}, nil
}

// HelmBuild is what HelmReleases are built with. The program is started when
// the first chart is rendered, and has to be closed.
func HelmBuild(ctx context.Context, a *app.App, o *BuildOptions, h *HelmOptions, work WorkTree) (*build.HelmOptions, *helmprocess.Program, error) {
	program, err := HelmRenderer(a)
	if err != nil {
		return nil, nil, err
	}
	options := &build.HelmOptions{
		Renderer: program, Lookup: lookupFor(a, o, work), Missing: missingFor(a, o, "values", "--values"), KubeVersion: h.KubeVersion, APIVersions: slices.Clone(h.APIVersions),
	}
	if options.Kustomizer, err = a.Kustomizer(o.Remote); err != nil {
		return nil, nil, err
	}
	options.Find = func(ctx context.Context, object build.Reference) (*unstructured.Unstructured, error) {
		return findSource(ctx, a, o, work, object)
	}
	if options.Sources, err = TreesOf(a, o, work, nil); err != nil {
		return nil, nil, err
	}
	if !o.DryRun {
		err = capabilities(ctx, a, options)
	} else if options.KubeVersion == "" {
		options.KubeVersion = AssumedKubernetes
	}
	return options, program, err
}

// capabilities asks the cluster what charts may build on.
func capabilities(ctx context.Context, a *app.App, options *build.HelmOptions) error {
	client, err := a.Client()
	if err != nil {
		return err
	}
	options.Live = FinderIn(client)
	if options.KubeVersion == "" {
		version, err := client.ServerVersion(ctx)
		if err != nil {
			return err
		}
		options.KubeVersion = "v" + version.String()
	}
	served, err := client.APIs(ctx)
	options.APIVersions = append(options.APIVersions, served...)
	return err
}

// ExplainHelm adds the way out to what keeps a chart from being rendered.
func ExplainHelm(err error) error {
	var source *build.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		return clierr.WithHint(fmt.Sprintf("give the chart by --chart, or the folder of the source by --local-sources %s=PATH", source.Source), "%w", err)
	}
	var values *build.VariablesError
	if errors.As(err, &values) && errors.Is(err, build.ErrNotFound) {
		return clierr.WithHint("create it, mark it optional in the spec, or build with --dry-run and give the values with --values", "%w", err)
	}
	return err
}

// PreferBuilt finds sources, ConfigMaps and Secrets among what is built before
// they are looked for elsewhere.
func PreferBuilt(options *build.HelmOptions, result *build.Result) {
	built := result.Unstructured()
	options.Lookup = build.Lookups(build.FromObjects(built), options.Lookup)
	find := options.Find
	options.Find = func(ctx context.Context, wanted build.Reference) (*unstructured.Unstructured, error) {
		for _, o := range built {
			if o.GetKind() == wanted.Kind && o.GetNamespace() == wanted.Namespace && o.GetName() == wanted.Name {
				return o, nil
			}
		}
		return find(ctx, wanted)
	}
}
