// Package tree implements the tree command.
package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/diagram"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/treeview"
	"github.com/fluxkit/flux/internal/graphviz"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

type options struct {
	compact, previous, failed bool
	depth, format             string
}

// formats returns the values of --output.
func formats() []string { return append([]string{"wide", "json", "yaml"}, diagram.Formats()...) }

// NewCommand returns the tree command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "tree", Applies: controllers.Tree, Single: true,
		Short: "Show the objects that a resource manages, down to pods",
		Of:    "Show the objects that %s objects manage, down to pods",
		OfKind: []kinds.Example{
			{Text: `  # Show the managed objects, the objects that they own, and their status
  flux tree %[1]s %[2]s -o wide`},
			{Text: `  # Show only the branches with objects that are not ready
  flux tree %[1]s %[2]s --failed`},
			{Text: `  # Show only inventories, as Flux 2.9 does
  flux tree %[1]s %[2]s --depth inventory`},
			{Text: `  # Write an HTML page with a diagram, search and failures
  flux tree %[1]s %[2]s -o html > %[2]s.html`},
		},
		Flags:     o.add,
		KindFlags: o.addOfKind,
		Examples: `  # Show the objects that several resources manage
  flux tree ks/my-app -o wide
  flux tree ks/my-app hr/my-app`,
		Run: func(cmd *cobra.Command, s kinds.Selection) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, s) })
		},
	})
	complete.Flag(cmd, "depth", cobra.FixedCompletions([]string{"all", "inventory"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *options) add(fs *pflag.FlagSet) {
	command.AddOutput(fs, &o.format, "output format; wide adds status, restarts and age and is the default on a terminal", formats()...)
	fs.BoolVar(&o.failed, "failed", false, "show only objects that are not ready and their ancestors")
	fs.StringVar(&o.depth, "depth", "all", "depth of the tree: all (including owned objects) or inventory (only applied objects; -o json and yaml use the fields of Flux 2.9)")
}

func (o *options) addOfKind(k controllers.Kind, fs *pflag.FlagSet) {
	if k.Family != "artifact" {
		fs.BoolVar(&o.compact, "compact", false, "show only Flux kinds")
		fs.BoolVar(&o.previous, "previous", false, "also show ReplicaSets of previous rollouts")
	}
}

// parsed validates the flags and converts them to tree options.
func (o *options) parsed(terminal bool) (tree.Options, error) {
	if o.depth != "all" && o.depth != "inventory" {
		return tree.Options{}, fmt.Errorf("invalid --depth %q: must be inventory or all", o.depth)
	}
	t := tree.Options{InventoryOnly: o.depth == "inventory", FluxOnly: o.compact, All: o.previous}
	switch {
	case o.format == "":
		t.Status = terminal || o.failed
	case o.format == "json" || o.format == "yaml":
		t.Status = !t.InventoryOnly || o.failed
	default:
		t.Status = true
	}
	return t, nil
}

func run(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) error {
	if len(s.Objects) == 0 {
		return s.ObjectRequired(cmd)
	}
	options, err := o.parsed(ui.IsTerminal(a.Out))
	if err != nil {
		return err
	}
	if len(s.Objects) > 1 && slices.Contains(diagram.Formats(), o.format) {
		return fmt.Errorf("--output %s accepts only one object", o.format)
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	subjects := s.In(namespace)
	if len(subjects) == 1 {
		return treeOf(ctx, a, client, o, options, subjects[0])
	}
	return severalTrees(ctx, a, client, o, options, subjects)
}

// severalTrees prints the trees of several objects as a JSON list, YAML
// documents or text. An error of one object does not affect the others.
func severalTrees(ctx context.Context, a *app.App, client *kube.Client, o *options, options tree.Options, subjects []objref.Target) error {
	var failed error
	documents := []json.RawMessage{}
	for i, t := range subjects {
		one := *a
		var text bytes.Buffer
		if o.format == "json" || o.format == "yaml" {
			one.Out = &text
		} else if i > 0 && options.Status { // the plain text ends with an empty line
			failed = errors.Join(failed, a.Printf("\n"))
		}
		if err := treeOf(ctx, &one, client, o, options, t); err != nil {
			a.Report(err)
			failed = clierr.ErrReported
		}
		if text.Len() > 0 {
			documents = append(documents, text.Bytes())
		}
	}
	switch o.format {
	case "json":
		failed = errors.Join(a.Encode(o.format, documents), failed)
	case "yaml":
		for _, document := range documents {
			failed = errors.Join(failed, a.Document("---\n"+string(document)))
		}
	}
	return failed
}

// treeOf prints the tree of an object.
func treeOf(ctx context.Context, a *app.App, client *kube.Client, o *options, options tree.Options, subject objref.Target) error {
	root := subject.Named()
	options.Kind = subject.Kind
	t, err := tree.Build(ctx, client, root, options)
	if err != nil {
		return objref.NotFound(err, subject)
	}
	if o.failed {
		if t.Root = t.Root.NotReady(); t.Root == nil {
			a.UI.Success("all objects below %s are ready", root)
			return treeview.ReportGaps(a, t.Gaps)
		}
	}
	if err := printTree(ctx, a, t.Root, o.format, options); err != nil {
		return err
	}
	return treeview.ReportGaps(a, t.Gaps)
}

func printTree(ctx context.Context, a *app.App, root *tree.Node, format string, options tree.Options) error {
	switch {
	case format == "json" && options.InventoryOnly:
		return tree.InventoryJSON(a.Output(format), root)
	case format == "yaml" && options.InventoryOnly:
		return tree.InventoryYAML(a.Output(format), root)
	case format == "json":
		return tree.JSON(a.Output(format), root)
	case format == "yaml":
		return tree.YAML(a.Output(format), root)
	case slices.Contains(diagram.Formats(), format):
		return treeDiagram(root).Draw(ctx, a.Output(format), format, graphviz.New(a.Helpers))
	case options.Status:
		style := treeview.Style(a)
		style.Fold = format == "wide"
		return tree.Wide(a.Out, root, style)
	default:
		return tree.Text(a.Out, root)
	}
}

// treeDiagram returns a diagram with a box for each node of the tree.
func treeDiagram(root *tree.Node) diagram.Diagram {
	d := diagram.Diagram{Title: root.Object.String(), Caption: "Arrows point from an object to the objects that it manages."}
	var add func(n *tree.Node, parent string)
	add = func(n *tree.Node, parent string) {
		id := strconv.Itoa(len(d.Boxes)) // an object may occur several times
		name := strings.TrimPrefix(n.Object.String(), n.Object.Kind+"/")
		note := strings.TrimSpace(string(n.Status) + " " + n.Message)
		d.Boxes = append(d.Boxes, diagram.Box{ID: id, Head: n.Object.Kind, Text: name, Note: note, Status: treeview.BoxStatus(n.Status)})
		if parent != "" {
			d.Arrows = append(d.Arrows, diagram.Arrow{From: parent, To: id})
		}
		for _, child := range n.Children {
			add(child, id)
		}
	}
	add(root, "")
	return d
}
