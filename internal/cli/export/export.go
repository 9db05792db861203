// Package export implements the export command.
package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/sequence"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/ui"
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
		Example: `  # Print one or several objects
  flux export %[1]s my-app
  flux export %[1]s my-app my-api

  # Write all objects of a namespace to a file
  flux export %[1]s --all -n apps > apps.yaml

  # Print all objects in the cluster, with the Secrets that they refer to
  flux export %[1]s -A --with-credentials`,
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

Objects are printed while they are listed. With --with-credentials, the specs of
all objects are kept in memory first, because each Secret is read and printed
once.

` + kinds.Help
	return cmd
}

func (o *options) add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.targets.All, "all", false, "print all objects of the namespace")
	fs.BoolVarP(&o.targets.AllNamespaces, "all-namespaces", "A", false, "print the objects of all namespaces")
	fs.StringVarP(&o.targets.Labels, "label-selector", "l", "", "print the objects with these labels, such as 'team=blue'")
	fs.BoolVar(&o.credentials, "with-credentials", false, "also print the Secrets that the objects refer to")
	fs.VarP(command.Choice{Value: &o.format, Allowed: []string{"yaml", "json"}}, "output", "o", "print yaml or json")
}

func run(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) error {
	if o.targets.AllNamespaces && len(s.Objects) > 0 {
		return errors.New("give names or --all-namespaces, not both")
	}
	selected := o.targets
	selected.Without = unexported()
	// A read-only command does not require --all with -A.
	selected.All = selected.All || selected.AllNamespaces && selected.Labels == ""
	if err := selected.With(s).Check(cmd, s); err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if selected.With(s).Selects() && !o.credentials {
		return exportStream(ctx, a, cmd, client, o.format, selected.With(s), s)
	}
	progress := exporting(a)
	defer progress.Done()
	c, err := kinds.Targets(ctx, a, cmd, selected, s)
	if err != nil {
		return err
	}
	found, failed := readAll(ctx, a, client, c.Targets)
	objects := found
	if o.credentials {
		var err error
		if objects, err = withSecrets(ctx, a, client, found); err != nil {
			failed = err
		}
	}
	progress.Done()
	if err := printManifests(a, o.format, objects, len(s.Objects) == 1); err != nil {
		return err
	}
	return errors.Join(failed, c.Incomplete)
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

// exportStream prints the objects of lists while they are read.
func exportStream(ctx context.Context, a *app.App, cmd *cobra.Command, client *kube.Client, format string, o kinds.TargetOptions, s kinds.Selection) error {
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	if o.AllNamespaces {
		namespace = ""
	}
	c := kinds.Chosen{What: s, Namespace: namespace, Listed: true}
	out := newManifestWriter(a, format)
	progress := exporting(a)
	defer progress.Done()
	var order *sequence.Sequence
	order = sequence.New(len(s.Kinds), func(o controllers.Object) error {
		progress.Count(order.Written, 0)
		return out.add(o)
	})
	selected := kube.Selection{Namespace: namespace, Labels: o.Labels, Without: unexported()}
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
	switch {
	case err != nil:
		return err
	case order.Failure() != nil:
		return errors.Join(out.flush(), c.Incomplete) // the failure has been reported
	case order.Written == 0:
		return c.NoneFound()
	}
	return errors.Join(out.close(), c.Incomplete)
}

// readAll returns the objects of the targets that exist. Errors of the others are
// reported.
func readAll(ctx context.Context, a *app.App, client *kube.Client, targets []objref.Target) ([]controllers.Object, error) {
	failed := kinds.Each(a, targets, func(t *objref.Target) error { return t.Read(ctx, client) })
	var found []controllers.Object
	for _, t := range targets {
		if t.Object != nil {
			found = append(found, t.Object)
		}
	}
	return found, failed
}

// need is a reference to a Secret.
type need struct {
	by       string
	optional bool
}

// withSecrets adds the Secrets that objects refer to, each after the first of
// these objects. It reports missing Secrets with the reference.
func withSecrets(ctx context.Context, a *app.App, client *kube.Client, objects []controllers.Object) ([]controllers.Object, error) {
	var wanted []objref.Target
	needs := map[string]need{}
	after := make([][]string, len(objects))
	for i, o := range objects {
		for _, ref := range controllers.SecretsOf(o) {
			t := objref.Target{Kind: desired.SecretKind(), Namespace: controllers.Namespace(o), Name: ref.Name}
			before, known := needs[t.Key()]
			if !known {
				wanted, after[i] = append(wanted, t), append(after[i], t.Key())
			}
			if !known || before.optional {
				needs[t.Key()] = need{fmt.Sprintf("%s %s/%s (%s)", o["kind"], t.Namespace, controllers.Name(o), ref.Field), ref.Optional}
			}
		}
	}
	secrets, failed := readSecrets(ctx, a, client, wanted, needs)
	var all []controllers.Object
	for i, o := range objects {
		all = append(all, o)
		for _, key := range after[i] {
			if secret, ok := secrets[key]; ok {
				all = append(all, secret)
			}
		}
	}
	return all, failed
}

func readSecrets(
	ctx context.Context, a *app.App, client *kube.Client, wanted []objref.Target, needs map[string]need,
) (map[string]controllers.Object, error) {
	err := kinds.Each(a, wanted, func(t *objref.Target) error {
		var err error
		t.Object, err = client.Get(ctx, kube.Of(desired.SecretKind()), t.Namespace, t.Name)
		needed := needs[t.Key()]
		switch {
		case apierrors.IsNotFound(err) && needed.optional:
			return nil
		case err != nil:
			return fmt.Errorf("reading the Secret %s/%s of %s: %w", t.Namespace, t.Name, needed.by, err)
		}
		return nil
	})
	read := map[string]controllers.Object{}
	for _, t := range wanted {
		if t.Object != nil {
			read[t.Key()] = t.Object
		}
	}
	if err != nil {
		a.Report(err)
		err = clierr.ErrReported
	}
	return read, err
}

// printManifests prints objects. In JSON one named object is not printed as a list.
func printManifests(a *app.App, format string, objects []controllers.Object, single bool) error {
	if len(objects) == 1 && single && format == "json" {
		return output.PrintObjects(a.Answer(format), format, []unstructured.Unstructured{{Object: controllers.Manifest(objects[0])}}, single)
	}
	out := newManifestWriter(a, format)
	for _, o := range objects {
		if err := out.add(o); err != nil {
			return err
		}
	}
	if len(objects) == 0 {
		return nil
	}
	return out.close()
}

// manifestWriter writes the manifests of objects one by one: a list in JSON,
// documents in YAML.
type manifestWriter struct {
	list      *output.ListWriter
	documents *bufio.Writer
}

func newManifestWriter(a *app.App, format string) *manifestWriter {
	if format == "json" {
		list, _ := output.NewListWriter(a.Answer(format), format)
		return &manifestWriter{list: list}
	}
	return &manifestWriter{documents: bufio.NewWriter(a.Answer(format))}
}

func (w *manifestWriter) add(o controllers.Object) error {
	manifest := controllers.Manifest(o)
	if w.list != nil {
		return w.list.Add(manifest)
	}
	text, err := output.Manifest(manifest)
	if err != nil {
		return fmt.Errorf("printing %s %q: %w", o["kind"], controllers.Name(o), err)
	}
	document := append([]byte("---\n"), text...)
	// After an error the output ends with a complete document.
	if len(document) > w.documents.Available() {
		if err := w.flush(); err != nil {
			return err
		}
	}
	_, err = w.documents.Write(document)
	return err
}

// flush writes the buffered documents. An incomplete list in JSON is not closed:
// it is invalid, so that it is not mistaken for all objects.
func (w *manifestWriter) flush() error {
	if w.list != nil {
		return nil
	}
	return w.documents.Flush()
}

func (w *manifestWriter) close() error {
	if w.list != nil {
		return w.list.Close()
	}
	return w.flush()
}
