// Package rollback implements the rollback command.
package rollback

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/rollback/reversal"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/rollback"
)

type options struct {
	revision          string
	undo, dryRun, yes bool
	wait              bool
	format            string
	// pullRequest opens a pull request. host is the kind of the Git host.
	pullRequest bool
	host        string
}

// NewCommand returns the rollback command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "rollback", Applies: controllers.Rollback, Single: true,
		Short: "Roll back a resource to its last good revision",
		Of:    "Roll back a %s to its last good revision",
		OfKind: []kinds.Example{
			{Text: `  # Show what a rollback would change
  flux rollback %[1]s %[2]s --dry-run`},
			{Text: `  # Roll back to the last good revision after confirmation
  flux rollback %[1]s %[2]s`},
			{For: released, Text: `  # Roll back to a chart version without a prompt
  flux rollback %[1]s %[2]s --revision %[4]s --yes`},
			{For: kinds.Unless(released), Text: `  # Roll back to a revision in the history without a prompt
  flux rollback %[1]s %[2]s --revision %[4]s --yes`},
			{Text: `  # Restore the state before the rollback
  flux rollback %[1]s %[2]s --undo`},
			{For: kinds.Unless(released), Text: `  # In a clone of the source: open a pull request that restores the directory of the object
  flux rollback %[1]s %[2]s --pull-request`},
			{Text: `  # Print the plan and the result
  flux rollback %[1]s %[2]s --yes -o json | jq -r .result`},
		},
		Examples: `  # List the revisions, and return to the last good one
  flux history ks my-app
  flux rollback ks/my-app`,
		Flags: o.add, KindFlags: o.addOfKind,
		Run: func(cmd *cobra.Command, s kinds.Selection) error {
			return o.run(a, cmd, s)
		},
	})
	complete.Flag(cmd, "revision", cobra.NoFileCompletions)
	cmd.Annotations = command.Exits{
		clierr.ExitSuccess: "the resource is ready at the revision; with --wait=false, the rollback was requested; with --dry-run, it is possible",
		clierr.ExitFailed:  "the rollback is not possible or was declined, or the resource did not become ready within --timeout",
	}.Annotations()
	cmd.Long = `Roll back a Kustomization or HelmRelease to its last good revision. The plan is
printed first, with all other objects that change.

Kustomizations:
  The source is pinned to the newest successful revision in the history whose
  objects differ from those of the last attempt: spec.ref.commit of a
  GitRepository, spec.ref.digest of an OCIRepository.

HelmReleases:
  The chart is pinned to that of the last successful release. Values are not
  rolled back.

The Flux object that applies the pinned one is suspended if it has set the field
and would revert it. --undo resumes it, and restores the state in the annotation
fluxkit.dev/rollback. --pull-request restores the directory in Git instead.

` + kinds.Help
	return cmd
}

// released reports whether a rollback selects the version of a chart.
func released(k controllers.Kind) bool { return k.Release }

func (o *options) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.revision, "revision", "", "revision to return to: a commit, digest or chart version; revisions in the history can be abbreviated")
	fs.BoolVar(&o.undo, "undo", false, "restore the state before the rollback")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print the plan without changing anything")
	fs.BoolVar(&o.wait, "wait", true, "wait until the source and the object are ready")
	command.AddYes(fs, &o.yes, "skip the confirmation")
	command.AddOutput(fs, &o.format, "print the plan and the result", "json", "yaml")
}

func (o *options) addOfKind(k controllers.Kind, fs *pflag.FlagSet) {
	if k.Release {
		return
	}
	fs.BoolVar(&o.pullRequest, "pull-request", false, "in a clone of the source: open a pull request that restores the directory of the Kustomization")
	fs.Var(command.Choice{Value: &o.host, Allowed: reversal.Hosts()}, "git-host", "kind of the Git host with --pull-request (default for public hosts, or from the CI system): "+strings.Join(reversal.Hosts(), ", "))
}

func (o *options) run(a *app.App, cmd *cobra.Command, s kinds.Selection) error {
	switch {
	case len(s.Objects) == 0:
		return s.ObjectRequired(cmd)
	case len(s.Objects) > 1:
		return hint.Errorf("run the command once for each object", "%s accepts one object", kinds.VerbOf(cmd))
	case o.undo && o.revision != "":
		return errors.New("--undo and --revision are mutually exclusive")
	case o.pullRequest && o.undo:
		return hint.Errorf("revert the commit of the pull request", "--pull-request and --undo are mutually exclusive")
	case !o.pullRequest && o.host != "":
		return errors.New("--git-host requires --pull-request")
	case !o.yes && !o.dryRun && !a.UI.Interactive():
		return fmt.Errorf("a rollback requires confirmation: %w", ui.ErrNoTerminal)
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	t := s.In(namespace)[0]
	if o.pullRequest {
		return reversal.Run(ctx, a, cmd, client, t, reversal.Options{Revision: o.revision, Host: o.host, DryRun: o.dryRun, Yes: o.yes, Format: o.format})
	}
	var plan *rollback.Plan
	if o.undo {
		plan, err = rollback.Undo(ctx, client, t)
	} else {
		plan, err = rollback.New(ctx, client, t, o.revision)
	}
	if err != nil {
		return err
	}
	r := &run{App: a, options: o, user: cmd.Context(), plan: plan, answer: answer{Plan: plan, Result: planned}}
	err = r.all()
	if o.format != "" {
		r.answer.set(err)
		err = errors.Join(a.Encode(o.format, r.answer), err)
	}
	return err
}
