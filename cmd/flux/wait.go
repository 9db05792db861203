package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

type waitOptions struct {
	targets  targetOptions
	state    string
	revision string
	children bool
	format   string
}

func newWait(a *app) *cobra.Command {
	o := &waitOptions{}
	cmd := a.multiply(verb{
		name: "wait", applies: controllers.Get,
		short: "Wait until resources are ready, suspended or deleted",
		of:    "Wait until %s objects are ready, suspended or deleted",
		example: `  # Wait until one is ready, ten minutes at most
  flux wait %[1]s my-app --timeout 10m

  # All of a namespace, or of the cluster
  flux wait %[1]s --all -n apps
  flux wait %[1]s --all -A

  # Until it is gone
  flux wait %[1]s my-app --for deleted

  # The outcome for a script
  flux wait %[1]s my-app -o json`,
		flags:     o.add,
		kindFlags: o.addOfKind,
		examples: `  # Wait until objects of several kinds are ready
  flux wait source/git/my-app ks/my-app --timeout 10m

  # Wait until everything in the cluster is ready
  flux wait all -A`,
		run: func(cmd *cobra.Command, s selection) error { return a.wait(cmd, o, s) },
	})
	completeReportFormat(cmd)
	completeFlag(cmd, "for", cobra.FixedCompletions([]string{reconcile.Ready, reconcile.Suspended, reconcile.Deleted}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Long = `Wait until objects are ready, suspended or deleted: the gate of a pipeline.

The exit code is 0 when all of them are, and 1 after --timeout or as soon as
waiting is of no use: an object is stalled (its controller has given up until
something changes), suspended or does not exist. A failure is waited out as long
as another attempt can come: its controller retries, or its source, its request
or its Kustomization has brought something that was not tried yet. With
--revision, a failure of another revision does not count.

What each object says of itself is printed when it changes; on a terminal it is
one line, with the time.

` + selectionHelp
	return cmd
}

func (o *waitOptions) add(fs *pflag.FlagSet) {
	o.targets.add(fs, "wait for")
	fs.StringVar(&o.state, "for", reconcile.Ready, "what to wait for: ready, suspended or deleted")
	addReportFormat(fs, &o.format)
}

func (o *waitOptions) addOfKind(k controllers.Kind, fs *pflag.FlagSet) {
	if _, ok := reconcile.RevisionPath(k); ok {
		fs.StringVar(&o.revision, "revision", "", "wait until it is ready at this revision, such as main@sha1:6f9a1b2c or a commit alone")
	}
	if k.Nests() {
		fs.BoolVar(&o.children, "children", false, "also wait for the Kustomizations and HelmReleases that it applies, and theirs")
	}
}

func (o *waitOptions) check(s selection) error {
	switch {
	case !slices.Contains([]string{reconcile.Ready, reconcile.Suspended, reconcile.Deleted}, o.state):
		return fmt.Errorf("--for %q is not known: use ready, suspended or deleted", o.state)
	case o.state != reconcile.Ready && (o.revision != "" || o.children):
		return errors.New("--revision and --children need --for ready")
	}
	for _, k := range s.kinds {
		_, ok := reconcile.RevisionPath(k)
		switch {
		case o.revision != "" && !ok:
			return fmt.Errorf("--revision does not apply to %s", k.Kind)
		case o.state == reconcile.Suspended && !k.Suspension.Possible():
			return fmt.Errorf("%s objects cannot be suspended", k.Kind)
		}
	}
	return checkReportFormat(o.format)
}

func (a *app) wait(cmd *cobra.Command, o *waitOptions, s selection) error {
	if s.every && o.state == reconcile.Suspended {
		s.kinds = slices.DeleteFunc(s.kinds, func(k controllers.Kind) bool { return !k.Suspension.Possible() })
	}
	if err := o.check(s); err != nil {
		return err
	}
	if err := o.targets.on(s).check(cmd, s); err != nil {
		return err
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	c, err := a.choose(ctx, cmd, o.targets, s)
	if err != nil {
		return err
	}
	if err := c.none(); err != nil && o.state != reconcile.Deleted {
		return err
	}
	if err := listNamed(ctx, client, &c); err != nil {
		return err
	}
	w := &waiter{app: a, client: client, options: o, user: cmd.Context(), failures: map[string]error{}}
	failed := w.run(ctx, c)
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	return errors.Join(failed, c.incomplete, a.printReport(o.format, w.outcomes()))
}

// listNamed finds many named objects of a kind in a namespace by one list, so
// that one watch, which starts where the list ended, can serve them all. Those
// that are not in it are left to be asked for by name.
func listNamed(ctx context.Context, client *kube.Client, c *chosen) error {
	if c.listed {
		return nil
	}
	named := map[place][]int{}
	for i, t := range c.targets {
		p := place{t.kind.Kind, t.namespace}
		named[p] = append(named[p], i)
	}
	for at, indexes := range named {
		if len(indexes) < reconcile.ShareFrom {
			continue
		}
		l := listTargets(ctx, client, c.targets[indexes[0]].kind, kube.Selection{Namespace: at.namespace})
		if l.err != nil {
			return l.err
		}
		c.lists = append(c.lists, l)
		found := map[string]controllers.Object{}
		for _, t := range l.targets {
			found[t.name] = t.object
		}
		for _, i := range indexes {
			c.targets[i].object = found[c.targets[i].name]
		}
	}
	return nil
}

// place is where objects of a kind are.
type place struct{ kind, namespace string }
