package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/helmprocess"
	"github.com/fluxkit/flux/pkg/controllers"
)

// helmProgram is a program of its own: Helm's SDK would cost every other
// command a third of its time to start.
const helmProgram = "flux-helm"

// assumedKubernetes is what charts see where no cluster is asked: the version
// of the client libraries, as in Helm.
const assumedKubernetes = "v1.36.0"

// helmOptions are the flags of all that builds HelmReleases.
type helmOptions struct {
	kubeVersion string
	apiVersions []string
	hooks       bool
	crds        bool
}

func (o *helmOptions) add(fs *pflag.FlagSet) {
	o.addCapabilities(fs)
	fs.BoolVar(&o.hooks, "hooks", false, "print the hooks of charts, too")
	fs.BoolVar(&o.crds, "crds", true, "print the definitions that charts bring")
}

// addCapabilities adds what charts see of a cluster.
func (o *helmOptions) addCapabilities(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeVersion, "kube-version", "", "the version of Kubernetes that charts see (default the cluster's, or "+assumedKubernetes+" where none is asked)")
	fs.StringSliceVar(&o.apiVersions, "api-versions", nil, "APIs that charts see besides, such as monitoring.coreos.com/v1")
}

// releaseOptions are the flags of build helmrelease.
type releaseOptions struct {
	buildOptions
	helmOptions
	chartOptions
}

// chartOptions are the flags for what lies over a HelmRelease.
type chartOptions struct {
	chart  string
	values []string
}

func (o *chartOptions) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.chart, "chart", "", "a folder or packed chart to render instead of the HelmRelease's")
	fs.StringArrayVar(&o.values, "values", nil, "a file with values above those of the HelmRelease")
}

func newBuildHelmRelease(a *app) *cobra.Command {
	o := &releaseOptions{buildOptions: buildOptions{format: "yaml"}}
	k, _ := controllers.FindKind("HelmRelease")
	cmd := &cobra.Command{
		Use:     "helmrelease [name]",
		Aliases: []string{"hr"},
		Short:   "Render what a HelmRelease would install",
		Long: `Render what a HelmRelease would install, as helm-controller does it: its chart
with spec.valuesFrom and spec.values, patched by spec.postRenderers, labelled.

The chart comes from where the HelmRelease says: a Helm repository, a registry,
or, in a Git repository, the work tree around the current folder or a folder
named by --local-sources. What is fetched is kept in the user's cache folder.
Charts see the version and the APIs of the cluster, and look up its objects.

With --dry-run, no cluster is asked: the HelmRelease is read from
--helmrelease-file, or found in the work tree, as are its source, ConfigMaps
and Secrets; charts that look objects up find none.`,
		Example: `  # What the chart would become on the cluster
  flux build helmrelease my-app

  # The same with a chart that is being worked on, and other values
  flux build helmrelease my-app --chart ./charts/my-app --values ./test-values.yaml

  # Without a cluster
  flux build helmrelease my-app --helmrelease-file ./apps/my-app.yaml --dry-run --kube-version 1.35.0`,
		ValidArgsFunction: a.completeNames(k),
		RunE:              func(cmd *cobra.Command, names []string) error { return a.buildHelmRelease(cmd, o, names) },
	}
	fs := cmd.Flags()
	o.chartOptions.add(fs)
	fs.StringVar(&o.file, "helmrelease-file", "", "a file with the HelmRelease, instead of the cluster's; - for standard input")
	fs.StringToStringVar(&o.sources, "local-sources", nil, "the folders of sources, such as GitRepository/flux-system/my-repo=./repo")
	fs.BoolVar(&o.dryRun, "dry-run", false, "ask no cluster: what the build needs is taken from the work tree")
	fs.VarP(choice{&o.format, []string{"yaml", "json"}}, "output", "o", "print yaml or json")
	o.secrets.add(fs)
	o.helmOptions.add(fs)
	return cmd
}

func (a *app) buildHelmRelease(cmd *cobra.Command, o *releaseOptions, names []string) (err error) {
	if len(names) != 1 {
		return hinted("flux build helmrelease NAME", "one HelmRelease name is required")
	}
	if err := o.secrets.check(); err != nil {
		return err
	}
	namespace, err := a.namespace(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	work, err := workTreeAround(".")
	if err != nil {
		return err
	}
	wanted := manifestWanted{"HelmRelease", "--helmrelease-file", build.IsHelmRelease}
	hr, err := a.objectFor(ctx, &o.buildOptions, wanted, work, namespace, names[0])
	if err != nil {
		return err
	}
	options, program, err := a.helmBuild(ctx, &o.buildOptions, &o.helmOptions, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if err := o.override(options); err != nil {
		return err
	}
	options.Revision = deployedRevision(hr)
	result, err := build.HelmRelease(ctx, hr, *options)
	if err != nil {
		return explainHelm(err)
	}
	return a.printBuild(&o.buildOptions, &build.Result{Objects: o.shown(result)})
}

// deployedRevision is the number of the release that is there, 0 where none is.
func deployedRevision(hr *unstructured.Unstructured) int {
	history, _, _ := unstructured.NestedSlice(hr.Object, "status", "history")
	if len(history) == 0 {
		return 0
	}
	last, _ := history[0].(map[string]any)
	version, _ := last["version"].(int64)
	return int(version)
}

// shown are the objects that the flags ask for.
func (o *helmOptions) shown(result *build.HelmResult) []build.Object {
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

// override lays what the command line has over what the release says.
func (o *chartOptions) override(options *build.HelmOptions) error {
	if o.chart != "" {
		absolute, err := filepath.Abs(o.chart)
		if err != nil {
			return fmt.Errorf("finding %s: %w", o.chart, err)
		}
		work, err := workTreeAround(filepath.Dir(absolute))
		if err != nil {
			return err
		}
		inside, err := work.inside(absolute)
		if err != nil {
			return err
		}
		if options.Chart, err = build.ChartIn(work.tree(), inside); err != nil {
			return fmt.Errorf("reading the chart %s: %w", o.chart, err)
		}
	}
	for _, file := range o.values {
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

// helmRenderer is the program that renders charts. It is started when the
// first one is to be rendered, and has to be closed.
func (a *app) helmRenderer() (*helmprocess.Program, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache folder: %w", err)
	}
	return &helmprocess.Program{Cache: filepath.Join(cache, "flux", "charts"), Stderr: a.err, Find: findHelper}, nil
}

// helmBuild is what HelmReleases are built with. The program is started when
// the first chart is rendered, and has to be closed.
func (a *app) helmBuild(ctx context.Context, o *buildOptions, h *helmOptions, work workTree) (*build.HelmOptions, *helmprocess.Program, error) {
	program, err := a.helmRenderer()
	if err != nil {
		return nil, nil, err
	}
	options := &build.HelmOptions{
		Renderer: program, Lookup: a.lookupFor(o, work), Missing: a.missingFor(o, "values", "--values"), KubeVersion: h.kubeVersion, APIVersions: slices.Clone(h.apiVersions),
	}
	if options.Kustomizer, err = a.kustomizer(o.remote); err != nil {
		return nil, nil, err
	}
	options.Find = func(ctx context.Context, object build.Reference) (*unstructured.Unstructured, error) {
		return a.findSource(ctx, o, work, object)
	}
	if options.Sources, err = a.treesOf(o, work, nil); err != nil {
		return nil, nil, err
	}
	if !o.dryRun {
		err = a.capabilities(ctx, options)
	} else if options.KubeVersion == "" {
		options.KubeVersion = assumedKubernetes
	}
	return options, program, err
}

// capabilities asks the cluster what charts may build on.
func (a *app) capabilities(ctx context.Context, options *build.HelmOptions) error {
	client, err := a.cluster()
	if err != nil {
		return err
	}
	options.Live = finderIn(client)
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

// explainHelm adds the way out to what keeps a chart from being rendered.
func explainHelm(err error) error {
	var source *build.SourceError
	if errors.As(err, &source) && errors.Is(err, build.ErrNotFound) {
		return hinted(fmt.Sprintf("give the chart by --chart, or the folder of the source by --local-sources %s=PATH", source.Source), "%w", err)
	}
	var values *build.VariablesError
	if errors.As(err, &values) && errors.Is(err, build.ErrNotFound) {
		return hinted("create it, mark it optional in the spec, or build with --dry-run and give the values with --values", "%w", err)
	}
	return err
}
