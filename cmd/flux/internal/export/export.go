// Package export implements the export command.
package export

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/sequence"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	targets     kinds.TargetOptions
	credentials bool
	format      string
}

// NewCommand returns the export command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{format: "yaml"}
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
		Flags: o.add,
		Examples: `  # Print objects of several kinds
  flux export ks/my-app source/git/my-app

  # Back up all objects in the cluster, with the Secrets that they refer to
  flux export -A --with-credentials > backup.yaml`,
		Run: func(cmd *cobra.Command, s kinds.Selection) error { return run(a, cmd, o, s) },
	})
	cmd.Long = `Print objects as manifests that can be applied.

The output excludes the status, the annotations of reconciliation requests and
the annotation of kubectl. It includes all labels, also the owner labels of
controllers. Secrets are printed as they are stored.

Objects are printed while they are listed. With --with-credentials, each Secret is
printed once, after the first object that refers to it.

` + kinds.Help
	return cmd
}

func refersToSecrets(k controllers.Kind) bool { return len(k.Secrets) > 0 }

func (o *options) add(fs *pflag.FlagSet) {
	o.targets.AddReading(fs, "print")
	fs.BoolVar(&o.credentials, "with-credentials", false, "also print the Secrets that the objects refer to")
	command.AddOutput(fs, &o.format, "output format", "yaml", "json")
}

func run(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) error {
	if o.targets.AllNamespaces && len(s.Objects) > 0 {
		return errors.New("names and --all-namespaces are mutually exclusive")
	}
	selected := o.targets
	selected.Without = unexported()
	if err := selected.With(s).Check(cmd, s); err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	progress := exporting(a)
	defer progress.Done()
	out := newManifestWriter(a, o.format, len(s.Objects) == 1)
	p := &printer{out: out, written: func(n int) { progress.Count(n, 0) }}
	if o.credentials {
		p.secrets = newSecretReader(ctx, client)
	}
	if selected.With(s).Selects() {
		return exportLists(ctx, a, cmd, client, p, selected.With(s), s)
	}
	return exportNamed(ctx, a, cmd, client, p, selected, s)
}

// unexported returns the large fields that manifests do not have.
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
func exportLists(ctx context.Context, a *app.App, cmd *cobra.Command, client *kube.Client, p *printer, o kinds.TargetOptions, s kinds.Selection) error {
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	if o.AllNamespaces {
		namespace = ""
	}
	c := kinds.Chosen{What: s, Namespace: namespace, Listed: true}
	order := sequence.New(len(s.Kinds), p.add)
	selected := kube.Selection{Namespace: namespace, Labels: o.Labels, Without: unexported()}
	p.start(ctx, a)
	err = kinds.ListKinds(ctx, a, &c, func(place int, k controllers.Kind) kinds.List {
		l := kinds.List{Kind: k, Namespace: namespace}
		l.Err = order.Read(place, func(each func(controllers.Object) error) error {
			return client.WithServedVersion(ctx, k, func(r kube.Resource) error {
				_, err := client.List(ctx, r, selected, each)
				return err
			})
		})
		if errors.Is(l.Err, sequence.ErrCutShort) {
			l.Err = nil // the list before it has failed
		}
		return l
	})
	failed := p.end()
	switch {
	case err != nil:
		return err
	case order.Failure() != nil:
		return errors.Join(p.out.flush(), c.Incomplete) // the failure has been reported
	case order.Written == 0:
		return c.NoneFound()
	}
	return errors.Join(p.out.close(), failed, c.Incomplete)
}

// exportNamed prints named objects. It reports the errors of those that cannot be
// read.
func exportNamed(ctx context.Context, a *app.App, cmd *cobra.Command, client *kube.Client, p *printer, o kinds.TargetOptions, s kinds.Selection) error {
	c, err := kinds.Targets(ctx, a, cmd, o, s)
	if err != nil {
		return err
	}
	failed := kinds.Each(a, c.Targets, func(t *objref.Target) error { return t.Read(ctx, client) })
	p.start(ctx, a)
	for _, t := range c.Targets {
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
