package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/diagram"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

type treeOptions struct {
	compact, all, failed bool
	depth, format        string
}

// treeFormats are the values of --output.
func treeFormats() []string { return append([]string{"wide", "json", "yaml"}, diagram.Formats()...) }

func newTree(a *app) *cobra.Command {
	o := &treeOptions{}
	cmd := a.multiply(verb{
		name: "tree", applies: controllers.Tree, single: true,
		short: "Show the objects that a resource manages, down to pods",
		of:    "Show what %s objects manage, down to pods",
		example: `  # Everything that it applies or that comes from it, and what that owns, with how ready it is
  flux tree %[1]s my-app -o wide

  # Only what leads to trouble
  flux tree %[1]s my-app --failed

  # Only what inventories name, as flux 2.9 shows it
  flux tree %[1]s my-app --depth inventory

  # A picture
  flux tree %[1]s my-app -o html > my-app.html`,
		flags:     o.add,
		kindFlags: o.addOfKind,
		examples: `  # Show everything that an object manages
  flux tree ks/my-app -o wide
  flux tree ks/my-app hr/my-app`,
		run: func(cmd *cobra.Command, s selection) error { return a.tree(cmd, o, s) },
	})
	completeFlag(cmd, "output", cobra.FixedCompletions(treeFormats(), cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "depth", cobra.FixedCompletions([]string{"all", "inventory"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *treeOptions) add(fs *pflag.FlagSet) {
	fs.StringVarP(&o.format, "output", "o", "", "print "+strings.Join(treeFormats(), "|")+"; wide adds status, restarts and age, and is the default on a terminal")
	fs.BoolVar(&o.failed, "failed", false, "show only what is not ready and what leads to it")
	fs.StringVar(&o.depth, "depth", "all", "how far down to go: all (with what the objects own), or inventory (what the object applies; -o json and yaml have the fields of Flux 2.9)")
}

func (o *treeOptions) addOfKind(k controllers.Kind, fs *pflag.FlagSet) {
	if k.Family != "artifact" {
		fs.BoolVar(&o.compact, "compact", false, "show only the kinds of Flux")
		fs.BoolVar(&o.all, "all", false, "show ReplicaSets of earlier rollouts, too")
	}
}

// parsed checks the flags and says what of the tree they ask for.
func (o *treeOptions) parsed(terminal bool) (tree.Options, error) {
	if o.depth != "all" && o.depth != "inventory" {
		return tree.Options{}, fmt.Errorf("depth %q is not known: use inventory or all", o.depth)
	}
	t := tree.Options{InventoryOnly: o.depth == "inventory", FluxOnly: o.compact, All: o.all}
	switch {
	case o.format == "":
		t.Status = terminal || o.failed
	case o.format == "json" || o.format == "yaml":
		t.Status = !t.InventoryOnly || o.failed
	case slices.Contains(treeFormats(), o.format):
		t.Status = true
	default:
		return t, fmt.Errorf("output format %q is not known: use %s", o.format, strings.Join(treeFormats(), ", "))
	}
	return t, nil
}

func (a *app) tree(cmd *cobra.Command, o *treeOptions, s selection) error {
	if len(s.objects) == 0 {
		return treeNeedsObject(cmd, s)
	}
	options, err := o.parsed(ui.IsTerminal(a.out))
	if err != nil {
		return err
	}
	if len(s.objects) > 1 && slices.Contains(diagram.Formats(), o.format) {
		return fmt.Errorf("--output %s takes one object", o.format)
	}
	client, namespace, err := a.place(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	subjects := s.in(namespace)
	if len(subjects) == 1 {
		return a.treeOf(ctx, client, o, options, subjects[0])
	}
	return a.severalTrees(ctx, client, o, options, subjects)
}

// severalTrees prints the trees of several objects: a JSON list, YAML documents,
// or one below another. One that cannot be had does not keep the others from it.
func (a *app) severalTrees(ctx context.Context, client *kube.Client, o *treeOptions, options tree.Options, subjects []target) error {
	var failed error
	documents := []json.RawMessage{}
	for i, t := range subjects {
		one := *a
		var text bytes.Buffer
		if o.format == "json" || o.format == "yaml" {
			one.out = &text
		} else if i > 0 && options.Status { // the plain text ends in a blank line
			failed = errors.Join(failed, a.printf("\n"))
		}
		if err := one.treeOf(ctx, client, o, options, t); err != nil {
			a.report(err)
			failed = errReported
		}
		if text.Len() > 0 {
			documents = append(documents, text.Bytes())
		}
	}
	switch o.format {
	case "json":
		failed = errors.Join(a.encode(o.format, documents), failed)
	case "yaml":
		for _, document := range documents {
			failed = errors.Join(failed, a.document("---\n"+string(document)))
		}
	}
	return failed
}

// treeOf prints the tree of an object.
func (a *app) treeOf(ctx context.Context, client *kube.Client, o *treeOptions, options tree.Options, subject target) error {
	root := tree.Object{
		Namespace: subject.namespace, Name: subject.name,
		GroupKind: schema.GroupKind{Group: subject.kind.Group, Kind: subject.kind.Kind},
	}
	t, err := tree.Build(ctx, client.Config, root, options)
	if err != nil {
		return missing(err, subject)
	}
	if o.failed {
		if t.Root = t.Root.Trouble(); t.Root == nil {
			a.ui.Success("everything below %s is ready", root)
			return a.reportGaps(t.Gaps)
		}
	}
	if err := a.printTree(t.Root, o.format, options); err != nil {
		return err
	}
	return a.reportGaps(t.Gaps)
}

func treeNeedsObject(cmd *cobra.Command, s selection) error {
	if s.several() {
		return hinted(verbOf(cmd)+" KIND/NAME", "an object is required")
	}
	return hinted(cmd.CommandPath()+" NAME", "one %s name is required", s.kinds[0].Kind)
}

func (a *app) printTree(root *tree.Node, format string, options tree.Options) error {
	switch {
	case format == "json" && options.InventoryOnly:
		return tree.InventoryJSON(a.answer(format), root)
	case format == "yaml" && options.InventoryOnly:
		return tree.InventoryYAML(a.answer(format), root)
	case format == "json":
		return tree.JSON(a.answer(format), root)
	case format == "yaml":
		return tree.YAML(a.answer(format), root)
	case slices.Contains(diagram.Formats(), format):
		return treeDiagram(root).Draw(a.answer(format), format)
	case options.Status:
		style := a.treeStyle()
		style.Fold = format == "wide"
		return tree.Wide(a.out, root, style)
	default:
		return tree.Text(a.out, root)
	}
}

// treeDiagram has a box for each line of the tree.
func treeDiagram(root *tree.Node) diagram.Diagram {
	d := diagram.Diagram{Title: root.Object.String()}
	var add func(n *tree.Node, parent string)
	add = func(n *tree.Node, parent string) {
		id := strconv.Itoa(len(d.Boxes)) // an object may stand in several places
		name := strings.TrimPrefix(n.Object.String(), n.Object.GroupKind.Kind+"/")
		note := strings.TrimSpace(string(n.Status) + " " + n.Message)
		d.Boxes = append(d.Boxes, diagram.Box{ID: id, Head: n.Object.GroupKind.Kind, Text: name, Note: note, Status: boxStatus(n.Status)})
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

func boxStatus(status tree.Status) diagram.Status {
	switch status {
	case tree.Ready:
		return diagram.Good
	case tree.Failed, tree.NotFound:
		return diagram.Bad
	case tree.InProgress, tree.Terminating:
		return diagram.Busy
	default:
		return diagram.Neutral
	}
}

// treeStyle is that of other tables where it is piped, and narrower and in
// colour on a terminal.
func (a *app) treeStyle() tree.Style {
	style := tree.Style{Now: a.now(), Separator: "\t"}
	if !ui.IsTerminal(a.out) {
		return style
	}
	style.Separator, style.Width = "  ", ui.Columns(a.out, a.env)
	if a.env("NO_COLOR") == "" && a.env("TERM") != "dumb" {
		style.Paint = paintStatus
	}
	return style
}

func paintStatus(status tree.Status, text string) string {
	hue := color.FgYellow
	switch status {
	case tree.Ready:
		hue = color.FgGreen
	case tree.Failed, tree.NotFound:
		hue = color.FgRed
	}
	c := color.New(hue)
	c.EnableColor()
	return c.Sprint(text)
}

// reportGaps names what is missing in an answer, all that may not be seen at
// once. That somebody may not see a kind is no failure: the rest is what was
// asked for.
func (a *app) reportGaps(gaps []tree.Gap) error {
	var failed error
	var forbidden []string
	for _, gap := range gaps {
		text := gap.Resource
		if len(gap.Namespaces) > 0 {
			text += " in " + strings.Join(gap.Namespaces, ", ")
		}
		if apierrors.IsForbidden(gap.Err) {
			forbidden = append(forbidden, text)
			continue
		}
		a.ui.Failure("listing %s: %s", text, gap.Err)
		failed = errReported
	}
	if len(forbidden) > 0 {
		a.ui.Warning("what you may not list is left out: %s", strings.Join(forbidden, "; "))
	}
	return failed
}
