// Package check implements the check command.
package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
)

type options struct {
	pre        bool
	strict     bool
	format     string
	components installflags.Components
	// named is true if a flag selects the components.
	named bool
}

// NewCommand returns the check command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check prerequisites, controllers and CRDs",
		Annotations: command.Exits{
			clierr.ExitSuccess: "no problems were found; there may be warnings, such as a controller scaled to zero",
			clierr.ExitFailed:  "a problem was found, or with --strict a warning",
		}.Annotations(),
		Long: `Check the prerequisites, controllers and CRDs of Flux. The command waits up to
--timeout for controllers that are starting, and reports other problems
immediately with their causes. A controller scaled to zero is a warning; with
--strict, warnings are failures.

Output:
  -o json and -o yaml print a report with the fields status (ok, warning or
  failed), checks and crds (each with name, status, version, message), and
  controllers (also with namespace and images).`,
		Example: `  # Check the prerequisites of an installation
  flux check --pre

  # Check an installation
  flux check

  # Fail if the controllers for image updates are missing
  flux check --components-extra=image-reflector-controller,image-automation-controller

  # Fail on warnings
  flux check --strict

  # List the controllers that are not ready
  flux check -o json | jq -r '.controllers[] | select(.status != "ok") | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.named = cmd.Flags().Changed("components") || cmd.Flags().Changed("components-extra")
			return run(a, cmd, o)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.pre, "pre", false, "check only the prerequisites of an installation")
	fs.BoolVar(&o.strict, "strict", false, "fail on warnings")
	command.AddOutput(fs, &o.format, "print a report", "json", "yaml")
	o.components.Add(fs)
	fs.Duration("poll-interval", 5*time.Second, "accepted for compatibility: the controllers are watched, not polled")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options) error {
	required, err := o.components.All()
	if err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	c := &checker{
		app: a, required: required, named: o.named, report: newReport(),
		rollout: &rollout.Waiter{Client: client, Namespace: namespace, AnyCause: true},
	}
	a.UI.Action("checking prerequisites")
	if err := c.fetch(ctx, client, o.pre); err != nil {
		return err
	}
	passed, err := c.run(ctx, o.pre)
	if err != nil {
		return err
	}
	failed := c.conclude(passed, o.strict)
	if o.format == "" {
		return failed
	}
	return errors.Join(a.Encode(o.format, c.report), failed)
}

// run performs the checks and returns the success message.
func (c *checker) run(ctx context.Context, pre bool) (passed string, err error) {
	ui := c.app.UI
	if err := c.prerequisites(); err != nil {
		return "", err
	}
	if pre {
		return "prerequisites checks passed", nil
	}
	ui.Action("checking version in cluster")
	c.distribution()
	if err := c.operator(ctx); err != nil {
		return "", err
	}
	ui.Action("checking controllers")
	if err := c.controllers(ctx); err != nil {
		return "", err
	}
	ui.Action("checking crds")
	c.definitions()
	return "all checks passed", nil
}

// conclude sets the status of the report. With strict, warnings are failures.
func (c *checker) conclude(passed string, strict bool) error {
	warnings, failures := c.report.count()
	switch {
	case failures > 0:
		c.report.Status = checkFailed
		c.app.UI.Failure("check failed")
	case warnings > 0 && strict:
		c.report.Status = checkFailed
		c.app.UI.Failure("check failed: %d warning(s) with --strict", warnings)
	case warnings > 0:
		c.report.Status = checkWarning
		c.app.UI.Success("%s, with warnings (%d)", passed, warnings)
		return nil
	default:
		c.app.UI.Success("%s", passed)
		return nil
	}
	return clierr.ErrReported
}

func (c *checker) prerequisites() error {
	flux := c.flux()
	constraint, supported, err := kube.Supports(c.server, flux.Kubernetes)
	if err != nil {
		return err
	}
	r := result{Name: "kubernetes", Status: checkOK, Version: c.server.String()}
	if !supported {
		r.Status, r.Message = checkFailed, fmt.Sprintf("too old: Flux %s requires %s", flux.Version, constraint)
		c.check(r, "Kubernetes %s is too old: Flux %s requires %s", c.server, flux.Version, constraint)
		if older, found := manifests.Newest(c.server); found && c.find(kube.InstalledCRD) == nil {
			c.app.UI.Line("  upgrade the cluster, or install Flux %s, which supports it, with --version=%[1]s", older.Version)
		}
		return nil
	}
	c.check(r, "Kubernetes %s %s", c.server, constraint)
	return nil
}
