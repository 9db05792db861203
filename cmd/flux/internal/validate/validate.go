// Package validate implements the validate command.
package validate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/checks"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/location"
	"github.com/fluxkit/flux/pkg/validate/render"
	"github.com/fluxkit/flux/pkg/validate/server"
)

// options holds the flag values.
type options struct {
	checks.Options
	format string
	// noSchemas accepts objects without a schema.
	noSchemas bool
	// sandbox also validates against an API server.
	sandbox bool
	// gates are the feature gates of the API server.
	gates map[string]string
}

// featureGates returns the feature gates for the API server, in the order of their names.
func (o *options) featureGates() (string, error) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o.gates)) {
		if _, err := strconv.ParseBool(o.gates[name]); err != nil {
			return "", hint.Errorf("write --feature-gates "+hint.Quote(name)+"=true or =false", "invalid value %q of the feature gate %s", o.gates[name], name)
		}
		all = append(all, name+"="+o.gates[name])
	}
	if len(all) > 0 && !o.sandbox {
		return "", hint.Errorf("add --sandbox", "--feature-gates requires --sandbox")
	}
	return strings.Join(all, ","), nil
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
  and API versions; --sandbox adds the checks of an API server.
  See "flux help validation".

Output:
  Findings include the file and line. Objects that cannot be validated are
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
  flux validate --path clusters/production --sandbox --feature-gates RelaxedServiceNameValidation=false

  # Validate custom resources whose CRD is not in the repository with other schemas
  flux validate --path clusters/production --schema-location ./schemas --schema-location \
    '` + location.Example + `'

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
			defer asked.Close() // run may not have returned after an interrupt
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, &asked) })
		},
	}
	fs := cmd.Flags()
	o.Add(a, cmd, "validate")
	fs.BoolVar(&o.sandbox, "sandbox", false, "also run a server-side dry run in a temporary sandbox (adds a few seconds per cluster)")
	fs.StringToStringVar(&o.gates, "feature-gates", nil, "API server feature gates with --sandbox, e.g. Name=true,Other=false")
	fs.BoolVar(&o.noSchemas, "allow-missing-schemas", false, "accept objects without a known schema")
	command.AddOutput(fs, &o.format, "output format", render.Formats()...)
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, asked *server.Schemas) (err error) {
	if asked.FeatureGates, err = o.featureGates(); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	r, err := o.Open(ctx, a, cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if o.sandbox {
		if err := asked.Find(a.Build.Version); err != nil {
			return err
		}
		asked.Schemas, asked.Announce = r.Options.Schemas, a.UI.Action
		r.Options.Schemas = asked
	}
	results, err := r.Each(ctx, a, "validating", func(ctx context.Context, o validate.Options) (*validate.Result, error) {
		return validate.Run(ctx, r.Clusters.Revision, o)
	})
	if err != nil {
		return err
	}
	if err := write(a, o.format, r.Kubernetes, results); err != nil {
		return err
	}
	return conclude(a, o, results)
}

// write prints the results.
func write(a *app.App, format, kubernetes string, results []*validate.Result) error {
	if format == "json" || format == "yaml" {
		return a.Encode(format, render.AnswerOf(kubernetes, results))
	}
	screen, _ := a.Screen(false)
	about := render.Validation()
	about.Width = screen.Width
	return render.Write(a.Output(format), format, about, results)
}

// conclude prints the totals and returns the error that sets the exit code.
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
		{validate.RuleNotRendered, "--allow-missing-sources", o.NoSources},
		{validate.RuleVariable, "--allow-missing-sources", o.NoSources},
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
		if rules[validate.RuleMissingSchema] > 0 {
			a.UI.Line("  set the directory or URL of missing schemas with --schema-location")
		}
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
