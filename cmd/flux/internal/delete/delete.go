// Package delete implements the delete command.
package delete

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	yes          bool
	dryRun       bool
	wait         bool
	suspendFirst bool
}

// NewCommand returns the delete command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	return kinds.NewCommand(a, kinds.Verb{
		Name: "delete", Applies: controllers.Delete, Explicit: true,
		Short: "Delete resources after showing the objects that are pruned with them",
		Of:    "Delete %s objects after showing the objects that are pruned with them",
		OfKind: []kinds.Example{
			{For: controllers.Kind.Applies, Text: `  # Show the objects that are pruned with an object, and ask for confirmation
  flux delete %[1]s %[2]s`},
			{For: controllers.Kind.Applies, Text: `  # Keep the resources that the object manages
  flux delete %[1]s %[2]s --suspend-first`},
			{For: kinds.Unless(controllers.Kind.Applies), Text: `  # Delete an object after confirmation
  flux delete %[1]s %[2]s`},
			{Text: `  # Show what would be deleted
  flux delete %[1]s %[2]s --dry-run`},
			{Text: `  # Delete several objects without a prompt and wait until they are deleted
  flux delete %[1]s %[2]s %[3]s --yes --wait`},
			{Text: `  # Delete objects by label
  flux delete %[1]s -l team=blue -n apps`},
			{Text: `  # Print the result for each object
  flux delete %[1]s --all --yes -o json | jq -r '.[] | select(.error) | .name'`},
		},
		Examples: `  # Delete objects of several kinds
  flux delete ks/my-app source/git/my-app`,
		Flags: func(fs *pflag.FlagSet) {
			command.AddYes(fs, &o.yes, "skip the confirmation")
			fs.BoolVar(&o.dryRun, "dry-run", false, "show what would be deleted with the objects, without deleting anything")
			fs.BoolVar(&o.wait, "wait", false, "wait until the objects are deleted")
			fs.BoolVar(&o.suspendFirst, "suspend-first", false, "suspend the objects first, so that the resources they manage are kept")
		},
		Action: &kinds.Action{
			Selects: "delete", Output: "print the result for each object", Formats: []string{"json", "yaml", "name"},
			Check: o.check, Begin: o.requireTerminal,
			Do: func(ctx context.Context, act *kinds.Act) error { return (&deletion{act, o}).run(ctx) },
		},
	})
}

func (o *options) check(act *kinds.Act) error {
	if o.dryRun && act.Format != "" {
		return errors.New("--dry-run and --output are mutually exclusive")
	}
	return nil
}

// requireTerminal returns an error if the user cannot be prompted.
func (o *options) requireTerminal(_ context.Context, act *kinds.Act) (end func(), err error) {
	if !o.yes && !o.dryRun && !act.App.UI.Interactive() {
		err = fmt.Errorf("deleting %s objects requires confirmation: %w", act.Selection.Noun(), ui.ErrNoTerminal)
	}
	return func() {}, err
}

type deletion struct {
	act     *kinds.Act
	options *options
}

func (d *deletion) run(ctx context.Context) error {
	var failed error
	if d.options.dryRun {
		failed = d.preview(ctx)
		d.warnOfFlux()
		d.act.Discard()
		return failed
	}
	if !d.options.yes {
		if failed = d.preview(ctx); len(d.act.Targets) == 0 {
			return failed
		}
		if yes, err := d.confirm(); err != nil || !yes {
			d.act.Discard()
			return declined(err)
		}
	}
	// --timeout does not include the time of the prompt.
	ctx, stop := d.act.App.WithTimeout(d.act.User)
	defer stop()
	return errors.Join(d.all(ctx), failed)
}

// confirm prompts for confirmation. For the Kustomization that installs Flux, the user must type
// its name.
func (d *deletion) confirm() (bool, error) {
	a, targets := d.act.App, d.act.Targets
	i := d.warnOfFlux()
	if i < 0 {
		return a.Confirm(d.act.User, question(targets))
	}
	answer, err := a.Ask(d.act.User, fmt.Sprintf("%s Type the name %s to confirm", question(targets), targets[i].Name))
	return answer == targets[i].Name, err
}

// warnOfFlux prints a warning if a target installs Flux, and returns its index, or -1.
func (d *deletion) warnOfFlux() int {
	a, targets := d.act.App, d.act.Targets
	i := slices.IndexFunc(targets, func(t objref.Target) bool { return installsFlux(t, a.FluxNamespace()) })
	if i < 0 || d.options.suspendFirst {
		return -1
	}
	a.UI.Warning("%s installs Flux: deleting it can remove the controllers, the CRDs and all Flux resources", targets[i])
	a.UI.Line("  'flux uninstall' removes Flux and keeps the resources that Flux has deployed")
	return i
}

func question(targets []objref.Target) string {
	if len(targets) == 1 {
		return fmt.Sprintf("Delete %s?", targets[0])
	}
	return fmt.Sprintf("Delete these %s?", objref.Count(targets))
}

func declined(err error) error {
	if err != nil {
		return err
	}
	return errors.New("nothing was deleted")
}

// preview reads each object and prints the consequences of its deletion. Missing objects are reported.
func (d *deletion) preview(ctx context.Context) error {
	err := d.act.Each(func(t *objref.Target) (string, error) { return report.ResultFailed, t.Read(ctx, d.act.Client) })
	d.act.Targets = slices.DeleteFunc(d.act.Targets, func(t objref.Target) bool { return t.Object == nil })
	for _, t := range d.act.Targets {
		d.act.App.UI.Warning("%s: %s", t, consequence(t, d.options.suspendFirst))
	}
	return err
}

// all requests all deletions before it waits for any.
func (d *deletion) all(ctx context.Context) error {
	failed := d.act.Each(func(t *objref.Target) (string, error) { return report.ResultDeleted, d.one(ctx, t) })
	if !d.options.wait {
		return failed
	}
	return errors.Join(d.await(ctx, d.act.Changed()), failed)
}

// one requests the deletion of an object and stores the response in the target.
func (d *deletion) one(ctx context.Context, t *objref.Target) error {
	d.act.App.UI.Action("deleting %s %s in %s namespace", t.Kind.Noun(), t.Name, t.Namespace)
	err := d.act.Client.WithServedVersion(ctx, t.Kind, func(r kube.Resource) (err error) {
		if d.options.suspendFirst {
			if _, err := d.act.Client.MergePatch(ctx, r, t.Namespace, t.Name, t.Kind.Suspension.Change(true)); err != nil {
				return err
			}
		}
		t.Object, err = d.act.Client.Delete(ctx, r, t.Namespace, t.Name)
		return err
	})
	switch {
	case err != nil:
		return objref.NotFound(err, *t)
	case d.options.wait:
	case d.act.Many():
		d.act.App.UI.Success("%s deleted", report.Label(*t, true))
	default:
		d.act.App.UI.Success("%s deleted", t.Kind.Noun())
	}
	return nil
}
