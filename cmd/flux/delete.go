package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
)

type deleteOptions struct {
	targets      targetOptions
	silent       bool
	wait         bool
	suspendFirst bool
	format       string
}

func newDelete(a *app) *cobra.Command {
	o := &deleteOptions{}
	cmd := a.multiply(verb{
		name: "delete", applies: controllers.Delete, explicit: true,
		short: "Delete resources after showing what is pruned with them",
		of:    "Delete %s objects after showing what is pruned with them",
		example: `  # See what is pruned with it, and decide
  flux delete %[1]s my-app

  # Several without a question, and wait until they are gone
  flux delete %[1]s my-app my-api --silent --wait

  # Those of a team
  flux delete %[1]s -l team=blue -n apps

  # Keep what it has deployed
  flux delete %[1]s my-app --suspend-first

  # Print the result for each object
  flux delete %[1]s --all --silent -o json | jq -r '.[] | select(.error) | .name'`,
		examples: `  # Delete objects of several kinds
  flux delete ks/my-app source/git/my-app`,
		flags: func(fs *pflag.FlagSet) {
			o.targets.add(fs, "delete")
			fs.BoolVarP(&o.silent, "silent", "s", false, "do not ask")
			fs.BoolVar(&o.wait, "wait", false, "wait until the objects are deleted")
			fs.BoolVar(&o.suspendFirst, "suspend-first", false, "suspend the objects first, so that the resources they manage are kept")
			addResultFormat(fs, &o.format)
		},
		run: func(cmd *cobra.Command, s selection) error { return a.delete(cmd, o, s) },
	})
	completeResultFormat(cmd)
	return cmd
}

func (a *app) delete(cmd *cobra.Command, o *deleteOptions, s selection) error {
	if err := checkResultFormat(o.format); err != nil {
		return err
	}
	if err := o.targets.on(s).check(cmd, s); err != nil {
		return err
	}
	if !o.silent && !a.ui.Interactive() {
		return fmt.Errorf("deleting %s objects needs an answer: %w", s.noun(), ui.ErrNoTerminal)
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	looking, cancel := a.bounded(cmd.Context())
	defer cancel()
	c, err := a.targets(looking, cmd, o.targets, s)
	if err != nil {
		return err
	}
	d := &deletion{app: a, client: client, options: o, results: newResults(c.targets), user: cmd.Context()}
	targets, failed := c.targets, c.incomplete
	if !o.silent {
		var lacking error
		if targets, lacking = d.preview(looking, targets); len(targets) == 0 {
			return errors.Join(a.printResults(o.format, d.results), lacking)
		}
		failed = errors.Join(failed, lacking)
		if yes, err := a.confirm(cmd.Context(), question(targets)); err != nil || !yes {
			return refusedDeletion(err)
		}
	}
	// The time that an answer takes is not the operation's.
	ctx, stop := a.bounded(cmd.Context())
	defer stop()
	err = d.run(ctx, targets)
	if cmd.Context().Err() != nil {
		return err
	}
	return errors.Join(a.printResults(o.format, d.results), err, failed)
}

func question(targets []target) string {
	if len(targets) == 1 {
		return fmt.Sprintf("Delete %s?", targets[0])
	}
	return fmt.Sprintf("Delete these %s?", countTargets(targets))
}

func refusedDeletion(err error) error {
	if err != nil {
		return err
	}
	return errors.New("nothing was deleted")
}

// preview reads each object and shows what is pruned with it. It returns the
// objects that exist, and reports the others.
func (d *deletion) preview(ctx context.Context, targets []target) ([]target, error) {
	read := make([]error, len(targets))
	err := d.app.each(targets, func(t target) error {
		i := d.results.place[t.key()]
		read[i] = targets[i].read(ctx, d.client)
		d.results.set(t, resultFailed, read[i])
		return read[i]
	})
	var there []target
	for i, t := range targets {
		if read[i] != nil {
			continue
		}
		there = append(there, t)
		d.app.ui.Warning("%s: %s", t, consequence(t, d.options.suspendFirst))
	}
	return there, err
}

type deletion struct {
	app     *app
	client  *kube.Client
	options *deleteOptions
	results *results
	// many objects are named with their namespaces.
	many bool
	// user ends with the command and not with --timeout.
	user context.Context
}

// run deletes everything before it waits for anything.
func (d *deletion) run(ctx context.Context, targets []target) error {
	d.many = len(targets) > 1
	failed := d.app.each(targets, func(t target) error {
		err := d.one(ctx, t)
		d.results.set(t, resultDeleted, err)
		return err
	})
	if !d.options.wait {
		return failed
	}
	return errors.Join(d.await(ctx, d.results.changed()), failed)
}

func (d *deletion) one(ctx context.Context, t target) error {
	d.app.ui.Action("deleting %s %s in %s namespace", t.kind.Noun(), t.name, t.namespace)
	err := d.client.With(ctx, t.kind, func(r kube.Resource) error {
		if d.options.suspendFirst {
			if _, err := d.client.Merge(ctx, r, t.namespace, t.name, t.kind.Suspension.Change(true)); err != nil {
				return err
			}
		}
		return d.client.Delete(ctx, r, t.namespace, t.name)
	})
	switch {
	case err != nil:
		return missing(err, t)
	case d.options.wait:
	case d.many:
		d.app.ui.Success("%s deleted", shown(t, d.many))
	default:
		d.app.ui.Success("%s deleted", t.kind.Noun())
	}
	return nil
}
