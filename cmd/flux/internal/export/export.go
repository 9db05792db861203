// Package export implements the export command.
package export

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/sequence"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	credentials bool
}

// NewCommand returns the export command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "export", Applies: controllers.Export,
		Short: "Export resources as manifests that can be applied",
		Of:    "Export %s objects as manifests that can be applied",
		OfKind: []kinds.Example{
			{Text: `  # Print one or several objects
  flux export %[1]s %[2]s
  flux export %[1]s %[2]s %[3]s`},
			{Text: `  # Write all objects in a namespace to a file
  flux export %[1]s --all -n apps > apps.yaml`},
			{For: refersToSecrets, Text: `  # Print all objects in the cluster, with the Secrets that they refer to
  flux export %[1]s -A --with-credentials`},
			{For: kinds.Unless(refersToSecrets), Text: `  # Print all objects in the cluster
  flux export %[1]s -A`},
		},
		Flags: func(fs *pflag.FlagSet) {
			fs.BoolVar(&o.credentials, "with-credentials", false, "also print the Secrets that the objects refer to")
		},
		Examples: `  # Print objects of several kinds
  flux export ks/my-app source/git/my-app

  # Back up all objects in the cluster, with the Secrets that they refer to
  flux export -A --with-credentials > backup.yaml`,
		Action: &kinds.Action{
			Selects: "print", Reading: true, Output: "output format", Formats: []string{"yaml", "json"}, Default: "yaml",
			Check: check, Do: o.export,
		},
	})
	cmd.Long = `Print objects as manifests that can be applied.

Output:
  The manifests exclude the status, the annotations of reconciliation requests
  and the annotation of kubectl. They include all labels, even the owner labels
  of controllers. Objects are printed while they are listed. Secrets are printed
  as they are stored; with --with-credentials, each Secret is printed once,
  after the first object that refers to it.

` + kinds.Help
	return cmd
}

func refersToSecrets(k controllers.Kind) bool { return len(k.Secrets) > 0 }

// check makes the action list the objects itself, so that they are printed while they are read.
func check(act *kinds.Act) error {
	act.Unlisted = true
	if act.Options.AllNamespaces && len(act.Selection.Objects) > 0 {
		return errors.New("names and --all-namespaces are mutually exclusive")
	}
	return nil
}

func (o *options) export(ctx context.Context, act *kinds.Act) error {
	progress := exporting(act.App)
	defer progress.Done()
	out := newManifestWriter(act.App, act.Format, len(act.Selection.Objects) == 1)
	p := &printer{out: out, written: func(n int) { progress.Count(n, 0) }}
	if o.credentials {
		p.secrets = newSecretReader(ctx, act.Client)
	}
	if act.Listed {
		return exportLists(ctx, act, p)
	}
	return exportNamed(ctx, act, p)
}

// unexported returns the large fields that manifests omit.
func unexported() []string { return []string{"metadata.managedFields", "status"} }

// exporting returns the progress, which is hidden if the objects are printed to a
// terminal.
func exporting(a *app.App) *ui.Progress {
	if ui.IsTerminal(a.Out) {
		return &ui.Progress{}
	}
	return a.UI.Progress(a.Now, "exporting")
}

// exportLists prints the objects of lists while they are read.
func exportLists(ctx context.Context, act *kinds.Act, p *printer) error {
	order := sequence.New(len(act.Selection.Kinds), p.add)
	selected := kube.Selection{Namespace: act.Namespace, Labels: act.Options.Labels, Without: unexported()}
	p.start(ctx, act.App)
	err := act.ListKinds(ctx, func(place int, k controllers.Kind) kinds.List {
		l := kinds.List{Kind: k, Namespace: act.Namespace}
		l.Err = order.Read(place, func(each func(controllers.Object) error) error {
			return act.Client.WithServedVersion(ctx, k, func(r kube.Resource) error {
				_, err := act.Client.List(ctx, r, selected, each)
				return err
			})
		})
		if errors.Is(l.Err, sequence.ErrCutShort) {
			l.Err = nil // an earlier list has failed
		}
		return l
	})
	failed := p.end()
	switch {
	case err != nil:
		return err
	case order.Failure() != nil:
		return p.out.flush() // the failure has been reported
	case order.Written == 0:
		return act.NoneFound()
	}
	return errors.Join(p.out.close(), failed)
}

// exportNamed prints named objects and reports those that cannot be read.
func exportNamed(ctx context.Context, act *kinds.Act, p *printer) error {
	failed := act.Try(func(t *objref.Target) error { return t.Read(ctx, act.Client) })
	p.start(ctx, act.App)
	for _, t := range act.Targets {
		if t.Object == nil {
			continue
		}
		if err := p.add(t.Object); err != nil {
			break // end returns it
		}
	}
	if err := p.end(); err != nil {
		failed = err
	}
	return errors.Join(p.out.close(), failed)
}
