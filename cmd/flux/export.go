package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
)

type exportOptions struct {
	targets     targetOptions
	credentials bool
	format      string
}

func newExport(a *app) *cobra.Command {
	o := &exportOptions{format: "yaml"}
	cmd := a.multiply(verb{
		name: "export", applies: controllers.Export,
		short: "Export resources as manifests that can be applied",
		of:    "Export %s objects as manifests that can be applied",
		example: `  # Print one, or several
  flux export %[1]s my-app
  flux export %[1]s my-app my-api

  # Keep all of a namespace in a file
  flux export %[1]s --all -n apps > apps.yaml

  # All of the cluster, with the Secrets that they refer to
  flux export %[1]s -A --with-credentials`,
		flags: o.add,
		examples: `  # Print objects of several kinds
  flux export ks/my-app source/git/my-app

  # Back up everything in the cluster, with the Secrets that it refers to
  flux export -A --with-credentials > backup.yaml`,
		run: func(cmd *cobra.Command, s selection) error { return a.export(cmd, o, s) },
	})
	cmd.Long = `Print objects as manifests that can be applied.

The status is left out, and so are the annotations by which a reconciliation is
asked for and the one of kubectl. Labels stay, also those by which controllers
mark what they own. Secrets are printed as they are stored.

Objects are printed while they are listed. --with-credentials holds the specs of
all objects in memory, because a Secret is printed only once.

` + selectionHelp
	return cmd
}

func (o *exportOptions) add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.targets.all, "all", false, "print all objects of the namespace")
	fs.BoolVarP(&o.targets.allNamespaces, "all-namespaces", "A", false, "print the objects of all namespaces")
	fs.StringVarP(&o.targets.labels, "label-selector", "l", "", "print the objects with these labels, such as 'team=blue'")
	fs.BoolVar(&o.credentials, "with-credentials", false, "print the Secrets that the objects refer to, too")
	fs.VarP(choice{&o.format, []string{"yaml", "json"}}, "output", "o", "print yaml or json")
}

func (a *app) export(cmd *cobra.Command, o *exportOptions, s selection) error {
	if o.targets.allNamespaces && len(s.objects) > 0 {
		return errors.New("give names or --all-namespaces, not both")
	}
	selected := o.targets
	selected.without = unexported()
	// To print what there is harms nobody: -A needs no --all beside it.
	selected.all = selected.all || selected.allNamespaces && selected.labels == ""
	if err := selected.on(s).check(cmd, s); err != nil {
		return err
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	if selected.on(s).selects() && !o.credentials {
		return a.exportStream(ctx, cmd, client, o.format, selected.on(s), s)
	}
	progress := a.exporting()
	defer progress.Done()
	c, err := a.targets(ctx, cmd, selected, s)
	if err != nil {
		return err
	}
	found, failed := a.readAll(ctx, client, c.targets)
	objects := found
	if o.credentials {
		var err error
		if objects, err = a.withSecrets(ctx, client, found); err != nil {
			failed = err
		}
	}
	progress.Done()
	if err := a.printManifests(o.format, objects, len(s.objects) == 1); err != nil {
		return err
	}
	return errors.Join(failed, c.incomplete)
}

// unexported are the large fields that no manifest has.
func unexported() []string { return []string{"metadata.managedFields", "status"} }

// exporting shows progress where the objects are not printed to the same terminal.
func (a *app) exporting() *ui.Progress {
	if ui.IsTerminal(a.out) {
		return &ui.Progress{}
	}
	return a.ui.Progress(a.now, "exporting")
}

// exportStream prints the objects of whole lists while these are read.
func (a *app) exportStream(ctx context.Context, cmd *cobra.Command, client *kube.Client, format string, o targetOptions, s selection) error {
	namespace, err := a.namespace(cmd)
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	c := chosen{what: s, namespace: namespace, listed: true}
	out := a.manifestWriter(format)
	progress := a.exporting()
	defer progress.Done()
	var order *sequence
	order = newSequence(len(s.kinds), func(o controllers.Object) error {
		progress.Count(order.written, 0)
		return out.add(o)
	})
	selected := kube.Selection{Namespace: namespace, Labels: o.labels, Without: unexported()}
	err = a.listChosen(ctx, &c, func(place int, k controllers.Kind) list {
		l := list{kind: k, namespace: namespace}
		l.err = order.read(place, func(each func(controllers.Object) error) error {
			return client.With(ctx, k, func(r kube.Resource) error {
				_, err := client.List(ctx, r, selected, each)
				return err
			})
		})
		if errors.Is(l.err, errCutShort) {
			l.err = nil // the list before it has failed
		}
		return l
	})
	switch {
	case err != nil:
		return err
	case order.failure() != nil:
		return errors.Join(out.flush(), c.incomplete) // the failure has been reported
	case order.written == 0:
		return c.none()
	}
	return errors.Join(out.close(), c.incomplete)
}

// readAll returns the objects of the targets that there are, in their order.
// What went wrong with the others has been reported.
func (a *app) readAll(ctx context.Context, client *kube.Client, targets []target) ([]controllers.Object, error) {
	var mu sync.Mutex
	read := map[string]controllers.Object{}
	failed := a.each(targets, func(t target) error {
		if err := t.read(ctx, client); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		read[t.key()] = t.object
		return nil
	})
	var found []controllers.Object
	for _, t := range targets {
		if o, ok := read[t.key()]; ok {
			found = append(found, o)
		}
	}
	return found, failed
}

// secretKind lets Secrets be read as the kinds of the catalogue are.
func secretKind() controllers.Kind {
	return controllers.Kind{Version: "v1", Kind: "Secret", Resource: "secrets"}
}

// need is who refers to a Secret, and whether it could do without.
type need struct {
	by       string
	optional bool
}

// withSecrets puts the Secrets that objects refer to behind the first object
// that does. A Secret that is not there is reported, together with who needs it.
func (a *app) withSecrets(ctx context.Context, client *kube.Client, objects []controllers.Object) ([]controllers.Object, error) {
	var wanted []target
	needs := map[string]need{}
	after := make([][]string, len(objects))
	for i, o := range objects {
		for _, ref := range controllers.SecretsOf(o) {
			t := target{kind: secretKind(), namespace: controllers.Namespace(o), name: ref.Name}
			before, known := needs[t.key()]
			if !known {
				wanted, after[i] = append(wanted, t), append(after[i], t.key())
			}
			if !known || before.optional {
				needs[t.key()] = need{fmt.Sprintf("%s %s/%s (%s)", o["kind"], t.namespace, controllers.Name(o), ref.Field), ref.Optional}
			}
		}
	}
	secrets, failed := a.readSecrets(ctx, client, wanted, needs)
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

func (a *app) readSecrets(
	ctx context.Context, client *kube.Client, wanted []target, needs map[string]need,
) (map[string]controllers.Object, error) {
	var mu sync.Mutex
	read := map[string]controllers.Object{}
	err := a.each(wanted, func(t target) error {
		secret, err := client.Get(ctx, kube.Of(secretKind()), t.namespace, t.name)
		needed := needs[t.key()]
		switch {
		case apierrors.IsNotFound(err) && needed.optional:
			return nil
		case err != nil:
			return fmt.Errorf("reading the Secret %s/%s of %s: %w", t.namespace, t.name, needed.by, err)
		}
		mu.Lock()
		defer mu.Unlock()
		read[t.key()] = secret
		return nil
	})
	if err != nil {
		a.report(err)
		err = errReported
	}
	return read, err
}

// printManifests prints objects: a named one in JSON by itself.
func (a *app) printManifests(format string, objects []controllers.Object, single bool) error {
	if len(objects) == 1 && single && format == "json" {
		return output.PrintObjects(a.answer(format), format, []unstructured.Unstructured{{Object: controllers.Manifest(objects[0])}}, single)
	}
	out := a.manifestWriter(format)
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

func (a *app) manifestWriter(format string) *manifestWriter {
	if format == "json" {
		list, _ := output.NewListWriter(a.answer(format), format)
		return &manifestWriter{list: list}
	}
	return &manifestWriter{documents: bufio.NewWriter(a.answer(format))}
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
	// The output ends behind a whole document, whatever ends it.
	if len(document) > w.documents.Available() {
		if err := w.flush(); err != nil {
			return err
		}
	}
	_, err = w.documents.Write(document)
	return err
}

// flush writes the documents so far. A list in JSON that is not closed is no
// valid JSON, so that nobody takes it for all objects.
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
