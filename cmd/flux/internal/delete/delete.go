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
	targets      kinds.TargetOptions
	silent       bool
	wait         bool
	suspendFirst bool
	format       string
}

// NewCommand returns the command delete.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "delete", Applies: controllers.Delete, Explicit: true,
		Short: "Delete resources after showing what is pruned with them",
		Of:    "Delete %s objects after showing what is pruned with them",
		OfKind: []kinds.Example{
			{For: controllers.Kind.Applies, Text: `  # Show what is pruned with an object and ask for confirmation
  flux delete %[1]s %[2]s`},
			{For: controllers.Kind.Applies, Text: `  # Keep the resources that it manages
  flux delete %[1]s %[2]s --suspend-first`},
			{For: kinds.Unless(controllers.Kind.Applies), Text: `  # Delete an object after confirmation
  flux delete %[1]s %[2]s`},
			{Text: `  # Delete several without a prompt and wait until they are deleted
  flux delete %[1]s %[2]s %[3]s --silent --wait`},
			{Text: `  # Delete objects by label
  flux delete %[1]s -l team=blue -n apps`},
			{Text: `  # Print the result for each object
  flux delete %[1]s --all --silent -o json | jq -r '.[] | select(.error) | .name'`},
		},
		Examples: `  # Delete objects of several kinds
  flux delete ks/my-app source/git/my-app`,
		Flags: func(fs *pflag.FlagSet) {
			o.targets.Add(fs, "delete")
			fs.BoolVarP(&o.silent, "silent", "s", false, "do not prompt for confirmation")
			fs.BoolVar(&o.wait, "wait", false, "wait until the objects are deleted")
			fs.BoolVar(&o.suspendFirst, "suspend-first", false, "suspend the objects first, so that the resources they manage are kept")
			command.AddOutput(fs, &o.format, "print the result for each object", "json", "yaml", "name")
		},
		Run: func(cmd *cobra.Command, s kinds.Selection) error { return run(a, cmd, o, s) },
	})
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) error {
	if err := o.targets.With(s).Check(cmd, s); err != nil {
		return err
	}
	if !o.silent && !a.UI.Interactive() {
		return fmt.Errorf("deleting %s objects requires a confirmation: %w", s.Noun(), ui.ErrNoTerminal)
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	reading, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	c, err := kinds.Targets(reading, a, cmd, o.targets, s)
	if err != nil {
		return err
	}
	d := &deletion{app: a, client: client, options: o, results: report.NewResults(c.Targets), user: cmd.Context()}
	targets, failed := c.Targets, c.Incomplete
	if !o.silent {
		var missing error
		if targets, missing = d.preview(reading, targets); len(targets) == 0 {
			return errors.Join(report.PrintResults(a, o.format, d.results), missing)
		}
		failed = errors.Join(failed, missing)
		if yes, err := a.Confirm(cmd.Context(), question(targets)); err != nil || !yes {
			return declined(err)
		}
	}
	// --timeout does not include the time of the prompt.
	ctx, stop := a.WithTimeout(cmd.Context())
	defer stop()
	err = d.all(ctx, targets)
	if cmd.Context().Err() != nil {
		return err
	}
	return errors.Join(report.PrintResults(a, o.format, d.results), err, failed)
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

// preview reads each object and prints what is pruned with it. It returns the
// objects that exist, and reports the others.
func (d *deletion) preview(ctx context.Context, targets []objref.Target) ([]objref.Target, error) {
	err := kinds.Each(d.app, targets, func(t *objref.Target) error {
		err := t.Read(ctx, d.client)
		d.results.Set(*t, report.ResultFailed, err)
		return err
	})
	found := slices.DeleteFunc(targets, func(t objref.Target) bool { return t.Object == nil })
	for _, t := range found {
		d.app.UI.Warning("%s: %s", t, consequence(t, d.options.suspendFirst))
	}
	return found, err
}

type deletion struct {
	app     *app.App
	client  *kube.Client
	options *options
	results *report.Results
	// many is set if messages have to name the object.
	many bool
	// user is the context of the command, without --timeout.
	user context.Context
}

// all requests all deletions before it waits for any.
func (d *deletion) all(ctx context.Context, targets []objref.Target) error {
	d.many = len(targets) > 1
	failed := kinds.Each(d.app, targets, func(t *objref.Target) error {
		err := d.one(ctx, t)
		d.results.Set(*t, report.ResultDeleted, err)
		return err
	})
	if !d.options.wait {
		return failed
	}
	return errors.Join(d.await(ctx, d.results.Changed(targets)), failed)
}

// one requests the deletion of an object and stores the response in the target.
func (d *deletion) one(ctx context.Context, t *objref.Target) error {
	d.app.UI.Action("deleting %s %s in %s namespace", t.Kind.Noun(), t.Name, t.Namespace)
	err := d.client.WithServedVersion(ctx, t.Kind, func(r kube.Resource) (err error) {
		if d.options.suspendFirst {
			if _, err := d.client.MergePatch(ctx, r, t.Namespace, t.Name, t.Kind.Suspension.Change(true)); err != nil {
				return err
			}
		}
		t.Object, err = d.client.Delete(ctx, r, t.Namespace, t.Name)
		return err
	})
	switch {
	case err != nil:
		return objref.NotFound(err, *t)
	case d.options.wait:
	case d.many:
		d.app.UI.Success("%s deleted", report.Label(*t, d.many))
	default:
		d.app.UI.Success("%s deleted", t.Kind.Noun())
	}
	return nil
}
