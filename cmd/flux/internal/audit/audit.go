// Package audit implements the audit command.
package audit

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/checks"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/audit"
	"github.com/fluxkit/flux/pkg/validate"
	"github.com/fluxkit/flux/pkg/validate/render"
)

// options holds the flag values.
type options struct {
	checks.Options
	exclusions       audit.Exclusions
	format           string
	severity, failOn severity
	// live audits the cluster instead of the repository. everywhere selects all namespaces.
	live, everywhere bool
}

// severity is a flag value, such as "warning".
type severity string

// NewCommand returns the audit command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{format: render.Human}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find risky configuration in a repository or a cluster",
		Long: `Find risky configuration in the Git repository in the current directory: secrets
in plain text, sources without TLS, charts and images without a version, missing
prune, wait, dependsOn and remediation, overlapping paths, privileged workloads,
and the findings of flux validate. Cluster access is not needed.

The command renders the Kustomizations and HelmReleases in a cluster directory
(--path) like flux validate, including patches, overlays and chart values. With
--cluster, it audits the Flux objects of the cluster instead.

Exceptions:
  --allow excludes rules. The annotation ` + audit.AllowAnnotation + ` excludes
  rules for an object, and the file ` + audit.File + ` for matching objects.
  See flux help audit-rules for the rules.

Output:
  By default, only errors exit with 1; see --fail-on. Secret values are never
  printed.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "no finding reaches the severity of --fail-on",
			clierr.ExitFailed:  "a finding reaches the severity of --fail-on",
			clierr.ExitUndetermined: "a Kustomization or HelmRelease could not be rendered (accepted by --allow-missing-sources), a kind could not be listed, " +
				"or the command line is invalid",
		}.Annotations(),
		Example: `  # Audit the production cluster
  flux audit --path clusters/production

  # Fail a pipeline on warnings, and accept a rule
  flux audit --path clusters/production --fail-on warning --allow create-namespace

  # Also check custom resources whose CRD is not in the repository
  flux audit --path clusters/production --schema-location ./schemas

  # Annotate the files of a pull request on GitHub
  flux audit -o github

  # Write a report for code scanning
  flux audit -o sarif > audit.sarif

  # Audit the Flux objects in all namespaces of the cluster
  flux audit --cluster -A`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o) })
		},
	}
	fs := cmd.Flags()
	o.Add(a, cmd, "audit")
	fs.StringSliceVar(&o.exclusions.Allow, "allow", nil, "rules to exclude, e.g. create-namespace,drift-detection")
	complete.Flag(cmd, "allow", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return audit.IDs(), cobra.ShellCompDirectiveNoFileComp
	})
	fs.BoolVar(&o.exclusions.Strict, "no-exceptions", false, "ignore exceptions in "+audit.File+" and in annotations, e.g. for untrusted pull requests")
	o.severity, o.failOn = severity(validate.Note), severity(validate.Invalid)
	fs.Var(command.Choice{Value: (*string)(&o.severity), Allowed: severities()}, "severity", "lowest severity to report: error, warning or note")
	fs.Var(command.Choice{Value: (*string)(&o.failOn), Allowed: severities()}, "fail-on", "lowest severity that exits with 1: error, warning or note")
	fs.BoolVar(&o.live, "cluster", false, "audit the Flux objects of the cluster instead of a repository")
	fs.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "with --cluster, audit the objects of all namespaces")
	command.AddOutput(fs, &o.format, "output format", render.Formats()...)
	return cmd
}

// severities returns the values of --severity and --fail-on.
func severities() []string {
	return []string{string(validate.Invalid), string(validate.Warning), string(validate.Note)}
}

// includes reports whether a finding reaches the severity of the flag.
func (s severity) includes(of validate.Severity) bool {
	return of != validate.Unknown && audit.Rank(of) <= audit.Rank(validate.Severity(s))
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	if err := audit.Check(o.exclusions.Allow); err != nil {
		return hint.Errorf("list the rules: flux help audit-rules", "--allow: %w", err)
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	var results []*validate.Result
	var err error
	switch {
	case o.live:
		if err := repositoryOnly(cmd); err != nil {
			return err
		}
		results, err = ofCluster(ctx, a, cmd, o)
	case o.everywhere:
		return hint.Errorf("flux audit --cluster -A", "--all-namespaces requires --cluster")
	default:
		results, err = ofRepository(ctx, a, cmd, o)
	}
	if err != nil {
		return err
	}
	return report(a, o, results)
}

// repositoryOnly returns an error for a flag that has no effect on a cluster.
func repositoryOnly(cmd *cobra.Command) error {
	for _, name := range []string{"path", "revision", "map", "vendor", "local-sources", "inputs", "schema-location"} {
		if cmd.Flags().Changed(name) {
			return hint.Errorf("remove one of them", "--cluster and --%s are mutually exclusive", name)
		}
	}
	return nil
}

func ofRepository(ctx context.Context, a *app.App, cmd *cobra.Command, o *options) (results []*validate.Result, err error) {
	r, err := o.Open(ctx, a, cmd)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Each(ctx, a, "auditing", func(ctx context.Context, options validate.Options) (*validate.Result, error) {
		return audit.Run(ctx, r.Clusters.Revision, audit.Options{Options: options, Exclusions: o.exclusions})
	})
}

// report prints the results and returns the error that sets the exit code.
func report(a *app.App, o *options, results []*validate.Result) error {
	count := map[validate.Severity]int{}
	failed, unknown, allowed, objects := 0, 0, 0, 0
	for _, r := range results {
		objects, allowed = objects+r.Objects, allowed+r.Allowed
		for _, f := range r.Findings {
			count[f.Severity]++
			switch {
			case o.failOn.includes(f.Severity):
				failed++
			case f.Severity == validate.Unknown && (!o.NoSources || f.Rule == validate.RuleSchemaLocation):
				unknown++
			}
		}
		r.Findings = slices.DeleteFunc(r.Findings, func(f validate.Finding) bool {
			return f.Severity != validate.Unknown && !o.severity.includes(f.Severity)
		})
	}
	if err := write(a, o, results); err != nil {
		return err
	}
	total := output.Amount(count[validate.Invalid], "error") + ", " + output.Amount(count[validate.Warning], "warning") + ", " + output.Amount(count[validate.Note], "note")
	if allowed > 0 {
		total += ", " + output.Amount(allowed, "exception")
	}
	switch {
	case failed > 0:
		a.UI.Failure("%s audited: %s", output.Amount(objects, "object"), total)
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	case unknown > 0:
		a.UI.Failure("%s audited: %s; %s could not be determined: exiting with 2", output.Amount(objects, "object"), total, output.Amount(unknown, "result"))
		if !o.live && !o.NoSources {
			a.UI.Line("  accept missing sources with --allow-missing-sources")
		}
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	case objects == 0:
		a.UI.Failure("no objects to audit")
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	}
	a.UI.Success("%s audited: %s", output.Amount(objects, "object"), total)
	return nil
}

// document is the JSON and YAML output.
type document struct {
	Clusters []*validate.Result `json:"clusters"`
}

func write(a *app.App, o *options, results []*validate.Result) error {
	if o.format == "json" || o.format == "yaml" {
		return a.Encode(o.format, document{results})
	}
	screen, _ := a.Screen(false)
	about := render.Report{Unknown: "Not audited", Checked: "audited", Rules: true, Describe: describe, Width: screen.Width}
	for _, s := range severities() {
		if o.failOn.includes(validate.Severity(s)) {
			about.Failed = append(about.Failed, validate.Severity(s))
		}
	}
	return render.Write(a.Output(o.format), o.format, about, results)
}

// describe returns the summary of a rule and the reason for it.
func describe(id string) (summary, reason string) {
	if r, ok := audit.Find(id); ok {
		return r.Summary, r.Reason
	}
	return render.Describe(id), render.Describe(id)
}
