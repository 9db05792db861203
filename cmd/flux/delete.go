package main

import (
	"context"
	"fmt"
	"time"

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
}

func newDelete(a *app) *cobra.Command {
	o := &deleteOptions{}
	return a.multiply(verb{
		name: "delete", applies: controllers.Delete,
		short: "Delete objects, with a question that says what goes with them",
		of:    "Delete %s objects",
		example: `  # See what it would take with it, and decide
  flux delete %[1]s my-app

  # Several without a question, and wait until they are gone
  flux delete %[1]s my-app my-api --silent --wait

  # Those of a team
  flux delete %[1]s -l team=blue -n apps

  # Keep what it has deployed
  flux delete %[1]s my-app --suspend-first`,
		flags: func(fs *pflag.FlagSet) {
			o.targets.add(fs, "delete")
			fs.BoolVarP(&o.silent, "silent", "s", false, "do not ask")
			fs.BoolVar(&o.wait, "wait", false, "wait until the objects are gone")
			fs.BoolVar(&o.suspendFirst, "suspend-first", false, "suspend the objects before, so that what they have deployed stays")
		},
		run: func(cmd *cobra.Command, k controllers.Kind, names []string) error {
			return a.delete(cmd, o, k, names)
		},
	})
}

func (a *app) delete(cmd *cobra.Command, o *deleteOptions, k controllers.Kind, names []string) error {
	if err := o.targets.check(cmd, k, names); err != nil {
		return err
	}
	if !o.silent && !a.ui.Interactive() {
		return fmt.Errorf("deleting %s objects needs an answer: %w", k.Kind, ui.ErrNoTerminal)
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	looking, cancel := a.bounded(cmd.Context())
	defer cancel()
	targets, err := a.targets(looking, cmd, &o.targets, k, names)
	if err != nil {
		return err
	}
	var failed error
	if !o.silent {
		if targets, failed = a.preview(looking, client, o, targets); len(targets) == 0 {
			return failed
		}
		if yes, err := a.confirm(cmd.Context(), question(targets)); err != nil || !yes {
			return refusedDeletion(err)
		}
	}
	// The time that an answer takes is not the operation's.
	ctx, stop := a.bounded(cmd.Context())
	defer stop()
	d := &deletion{app: a, client: client, options: o, started: a.now(), user: cmd.Context()}
	if err := d.run(ctx, targets); err != nil {
		return err
	}
	return failed
}

func question(targets []target) string {
	if len(targets) == 1 {
		return fmt.Sprintf("Delete %s?", targets[0])
	}
	return fmt.Sprintf("Delete these %d %s objects?", len(targets), targets[0].kind.Kind)
}

func refusedDeletion(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("nothing was deleted")
}

// preview reads each object and says what its deletion takes with it. It
// returns those that there are, and reports the others.
func (a *app) preview(ctx context.Context, client *kube.Client, o *deleteOptions, targets []target) ([]target, error) {
	read := make([]error, len(targets))
	index := map[string]int{}
	for i, t := range targets {
		index[t.key()] = i
	}
	err := a.each(targets, func(t target) error {
		i := index[t.key()]
		read[i] = targets[i].read(ctx, client)
		return read[i]
	})
	var there []target
	for i, t := range targets {
		if read[i] != nil {
			continue
		}
		there = append(there, t)
		a.ui.Warning("%s: %s", t, consequence(t, o.suspendFirst))
	}
	return there, err
}

type deletion struct {
	app     *app
	client  *kube.Client
	options *deleteOptions
	started time.Time
	// user ends with the command and not with --timeout.
	user context.Context
}

// run deletes everything before it waits for anything.
func (d *deletion) run(ctx context.Context, targets []target) error {
	gone := make([]bool, len(targets))
	index := map[string]int{}
	for i, t := range targets {
		index[t.key()] = i
	}
	failed := d.app.each(targets, func(t target) error {
		err := d.one(ctx, t)
		gone[index[t.key()]] = err == nil
		return err
	})
	if !d.options.wait {
		return failed
	}
	var waiting []target
	for i, t := range targets {
		if gone[i] {
			waiting = append(waiting, t)
		}
	}
	if err := d.await(ctx, waiting); err != nil {
		return err
	}
	return failed
}

func (d *deletion) one(ctx context.Context, t target) error {
	noun := t.kind.Noun()
	d.app.ui.Action("deleting %s %s in %s namespace", noun, t.name, t.namespace)
	err := d.client.With(ctx, t.kind, func(r kube.Resource) error {
		if d.options.suspendFirst {
			if _, err := d.client.Merge(ctx, r, t.namespace, t.name, t.kind.Suspension.Change(true)); err != nil {
				return err
			}
		}
		return d.client.Delete(ctx, r, t.namespace, t.name)
	})
	if err != nil {
		return missing(err, t)
	}
	if !d.options.wait {
		d.app.ui.Success("%s deleted", noun)
	}
	return nil
}
