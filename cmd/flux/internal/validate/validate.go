// Package validate implements the validate command.
package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/render"
	"github.com/fluxkit/flux/pkg/validate/server"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// options has the values of the flags.
type options struct {
	buildflags.Options
	helm        desired.HelmOptions
	paths       []string
	revision    string
	fluxVersion string
	format      string
	withHelm    bool
	// noSchemas and noSources accept objects without a schema, and what was not rendered.
	noSchemas, noSources bool
	// sandbox asks an API server, too.
	sandbox bool
}

// NewCommand returns the validate command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{format: render.Human}
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Validate the manifests of a repository",
		Long: `Validate the objects that the Git repository in the current directory deploys,
without cluster access. The Kustomizations and HelmReleases in the cluster
directory (--path) are built as in "flux diff --base", and each object is
checked.

Checks:
  Schemas, validation rules (CEL), references, dependencies, variables, owners
  and API versions; --sandbox adds those of an API server.
  See "flux help validation".

Output:
  Findings have the file and the line. Objects that cannot be validated are
  listed; Secret values are never printed.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "all objects were validated and are valid; warnings and notes do not change the exit code",
			clierr.ExitFailed:  "an object is invalid",
			clierr.ExitUndetermined: "undetermined: a schema is unknown (accepted by --allow-missing-schemas), a Kustomization or HelmRelease could not be fully " +
				"rendered because a source, variables or values are missing (accepted by --allow-missing-sources), or the command line is invalid",
		}.Annotations(),
		Example: `  # Validate the production cluster
  flux validate --path clusters/production

  # Validate all clusters of a commit
  flux validate --path 'clusters/*' --revision HEAD

  # Validate with all rules of an API server
  flux validate --path clusters/production --sandbox

  # Accept custom resources whose CRD is not in the repository
  flux validate --path clusters/production --allow-missing-schemas

  # Annotate the files of a pull request on GitHub
  flux validate --path clusters/production -o github

  # Write a report for code scanning
  flux validate --path clusters/production -o sarif > validate.sarif

  # Write a report for a CI system
  flux validate --path clusters/production -o junit > validate.xml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var asked server.Schemas
			defer asked.Close() // also after an interrupt, when run may not have returned
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, &asked) })
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&o.paths, "path", nil, "directory of the cluster, e.g. clusters/production; for several clusters, repeat it or quote a pattern (default: detected cluster directories)")
	fs.StringVar(&o.revision, "revision", "", "revision to validate: branch, tag or commit (default: the work tree)")
	complete.Revisions(cmd, "revision")
	fs.StringVar(&o.helm.KubeVersion, "kube-version", verdict.KubernetesVersions()[0], "Kubernetes version for schemas and chart capabilities: "+strings.Join(verdict.KubernetesVersions(), ", "))
	complete.Flag(cmd, "kube-version", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return verdict.KubernetesVersions(), cobra.ShellCompDirectiveNoFileComp
	})
	fs.StringSliceVar(&o.helm.APIVersions, "api-versions", nil, "additional API versions for chart capabilities, e.g. monitoring.coreos.com/v1")
	fs.StringVar(&o.fluxVersion, "flux-version", controllers.DefaultVersion, "Flux version of the CRDs if the repository does not contain them: "+strings.Join(controllers.EmbeddedVersions(), ", "))
	command.CompleteEmbeddedVersion(cmd, "flux-version")
	fs.BoolVar(&o.withHelm, "with-helm", true, "also render and validate the charts of HelmReleases")
	fs.BoolVar(&o.sandbox, "sandbox", false, "also run a server-side dry run in a temporary sandbox (adds a few seconds per cluster)")
	fs.BoolVar(&o.noSchemas, "allow-missing-schemas", false, "accept objects without a known schema")
	fs.BoolVar(&o.noSources, "allow-missing-sources", false, "accept Kustomizations and HelmReleases that cannot be fully rendered")
	fs.StringToStringVar(&o.Sources, "local-sources", nil, "local directories to use for sources with other URLs, e.g. OCIRepository/flux-system/apps=./apps")
	o.AddLocal(cmd)
	o.AddVariables(fs)
	o.AddRemote(fs)
	buildflags.AddUntrusted(a, fs, &o.Untrusted)
	command.AddOutput(fs, &o.format, "output format", render.Formats()...)
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, asked *server.Schemas) (err error) {
	minor, err := verdict.Minor(o.helm.KubeVersion)
	if err != nil {
		return hint.Errorf("use --kube-version "+verdict.KubernetesVersions()[0], "%w", err)
	}
	crds, err := fluxCRDs(o.fluxVersion)
	if err != nil {
		return err
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	checkout, err := buildflags.OpenRepository(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, checkout.Close()) }()
	if err := o.ReadLocal(ctx, a); err != nil {
		return err
	}
	base, err := o.Graph(ctx, a, checkout, namespace, o.helm)
	if err != nil {
		return err
	}
	if o.withHelm {
		if base.Charts.Renderer, err = isolated.CachedCharts(a.Helpers); err != nil {
			return err
		}
	}
	var schemas verdict.Schemas = verdict.New(a.Helpers)
	if o.sandbox {
		if err := asked.Find(a.Build.Version); err != nil {
			return err
		}
		asked.Schemas, asked.Announce = schemas, a.UI.Action
		schemas = asked
	}
	options := validate.Options{
		Options: base, Schemas: schemas, Kubernetes: minor,
		CRDs: crds, CRDsOf: manifests.CRDs, Versions: verdict.New(a.Helpers), FluxVersion: o.fluxVersion, Assumed: !cmd.Flags().Changed("flux-version"),
		Supported: sync.OnceValues(supportedCRDs), Expressions: expression.New(a.Helpers),
	}
	clusters, err := options.Find(ctx, checkout, o.revision, o.paths)
	if err != nil {
		return err
	}
	results, err := validateAll(ctx, a, clusters, options)
	if err != nil {
		return err
	}
	if n := checkout.Lacking(); n > 0 {
		return hint.Errorf("fetch them: git checkout, or a clone without --filter", "this partial clone does not have %d of the files", n)
	}
	if err := write(a, o.format, minor, results); err != nil {
		return err
	}
	return conclude(a, o, results)
}

// fluxCRDs returns the CustomResourceDefinitions of a version of Flux.
func fluxCRDs(version string) ([]*unstructured.Unstructured, error) {
	d, err := command.EmbeddedVersion("--flux-version", version)
	if err != nil {
		return nil, err
	}
	return manifests.CRDs(d.Version)
}

// supportedCRDs returns the CustomResourceDefinitions of all supported versions of Flux.
func supportedCRDs() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, version := range controllers.EmbeddedVersions() {
		crds, err := manifests.CRDs(version)
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	return all, nil
}

// write prints the results.
func write(a *app.App, format, kubernetes string, results []*validate.Result) error {
	if format == "json" || format == "yaml" {
		return a.Encode(format, render.AnswerOf(kubernetes, results))
	}
	return render.Write(a.Answer(format), format, results)
}

// validateAll validates all clusters.
func validateAll(ctx context.Context, a *app.App, clusters validate.Clusters, o validate.Options) ([]*validate.Result, error) {
	noted := map[string]bool{}
	var results []*validate.Result
	for _, path := range clusters.Paths {
		line := a.UI.Progress(a.Now, "validating %s", path)
		o.Path = path
		o.Note = func(text string) {
			if !noted[text] {
				a.UI.Action("%s", text)
			}
			noted[text] = true
		}
		result, err := validate.Run(ctx, clusters.Revision, o)
		line.Done()
		if err != nil && len(clusters.Paths) > 1 {
			err = fmt.Errorf("validating %s: %w", path, err)
		}
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// conclude prints the totals, and returns the exit code.
func conclude(a *app.App, o *options, results []*validate.Result) error {
	objects, validated, invalid := 0, 0, 0
	rules := map[string]int{}
	for _, r := range results {
		objects, validated, invalid = objects+r.Objects, validated+r.Validated, invalid+r.Count(validate.Invalid)
		for _, f := range r.Findings {
			if f.Severity == validate.Unknown {
				rules[f.Rule]++
			}
		}
	}
	accepted, flags := 0, []string(nil)
	for _, accept := range []struct {
		rule, flag string
		set        bool
	}{
		{validate.RuleMissingSchema, "--allow-missing-schemas", o.noSchemas},
		{validate.RuleNotRendered, "--allow-missing-sources", o.noSources},
		{validate.RuleVariable, "--allow-missing-sources", o.noSources},
	} {
		switch {
		case accept.set:
			accepted += rules[accept.rule]
			delete(rules, accept.rule)
		case rules[accept.rule] > 0 && !slices.Contains(flags, accept.flag):
			flags = append(flags, accept.flag)
		}
	}
	unknown := 0
	for _, n := range rules {
		unknown += n
	}
	switch {
	case invalid > 0:
		a.UI.Failure("%d of %d objects validated: %s", validated, objects, output.Amount(invalid, "error"))
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	case unknown > 0:
		a.UI.Failure("%d of %d objects validated and valid; %s could not be determined: exiting with 2", validated, objects, output.Amount(unknown, "result"))
		if len(flags) > 0 {
			a.UI.Line("  accept missing schemas and sources with %s", strings.Join(flags, " "))
		}
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	case accepted > 0 && validated == 0:
		a.UI.Failure("none of %s could be validated: exiting with 2", output.Amount(objects, "object"))
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	case accepted > 0:
		a.UI.Success("%d of %d objects validated and valid; the others are accepted without validation", validated, objects)
	case objects == 0:
		a.UI.Failure("no objects to validate")
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	default:
		a.UI.Success("%s validated and valid", output.Amount(objects, "object"))
	}
	return nil
}
