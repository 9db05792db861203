package main

import (
	"fmt"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

type treeOptions struct {
	compact, all  bool
	depth, format string
}

func newTree(a *app) *cobra.Command {
	o := &treeOptions{}
	return a.multiply(verb{
		name: "tree", applies: controllers.Tree,
		short: "Show what hangs below an object, down to the pods",
		of:    "Show what hangs below a %s, down to the pods",
		example: `  # Everything that it applies and what that owns, with how ready it is
  flux tree %[1]s my-app -o wide

  # Only what its inventory names, as flux 2.9 shows it
  flux tree %[1]s my-app --depth inventory`,
		kindFlags: o.add,
		run:       func(cmd *cobra.Command, k controllers.Kind, names []string) error { return a.tree(cmd, o, k, names) },
	})
}

func (o *treeOptions) add(k controllers.Kind, fs *pflag.FlagSet) {
	fs.StringVarP(&o.format, "output", "o", "", "print json|yaml|wide; wide adds status, restarts and age, and is the default on a terminal")
	fs.StringVar(&o.depth, "depth", "all", "how far down to go: inventory (what the object applies) or all (with what that owns)")
	if k.Family == "" {
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
	switch o.format {
	case "":
		t.Status = terminal
	case "wide":
		t.Status = true
	case "json", "yaml":
		t.Status = !t.InventoryOnly
	default:
		return t, fmt.Errorf("output format %q is not known: use json, yaml or wide", o.format)
	}
	return t, nil
}

func (a *app) tree(cmd *cobra.Command, o *treeOptions, k controllers.Kind, names []string) error {
	if len(names) != 1 {
		return hinted(fmt.Sprintf("flux %s NAME", cmd.CommandPath()[len("flux "):]), "one %s name is required", k.Kind)
	}
	options, err := o.parsed(ui.IsTerminal(a.out))
	if err != nil {
		return err
	}
	client, namespace, err := a.place(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	root := tree.Object{Namespace: namespace, Name: names[0], GroupKind: schema.GroupKind{Group: k.Group, Kind: k.Kind}}
	t, err := tree.Build(ctx, client.Config, root, options)
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return &notFoundError{target{kind: k, namespace: namespace, name: names[0]}}
	}
	if err != nil {
		return err
	}
	if err := a.printTree(t.Root, o.format, options); err != nil {
		return err
	}
	return a.reportGaps(t.Gaps)
}

func (a *app) printTree(root *tree.Node, format string, options tree.Options) error {
	switch {
	case format == "json":
		return tree.JSON(a.out, root)
	case format == "yaml":
		return tree.YAML(a.out, root)
	case options.Status:
		return tree.Wide(a.out, root, a.treeStyle())
	default:
		return tree.Text(a.out, root)
	}
}

// treeStyle is that of other tables where it is piped, and narrower and in
// colour on a terminal.
func (a *app) treeStyle() tree.Style {
	style := tree.Style{Now: a.now(), Separator: "\t"}
	if !ui.IsTerminal(a.out) {
		return style
	}
	style.Separator, style.Width = "  ", ui.Width(a.out)
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

// reportGaps names what is not in the tree. That somebody may not see a kind
// is no failure: the rest of the tree is what was asked for.
func (a *app) reportGaps(gaps []tree.Gap) error {
	var failed error
	for _, gap := range gaps {
		where := ""
		if len(gap.Namespaces) > 0 {
			where = " in " + strings.Join(gap.Namespaces, ", ")
		}
		if apierrors.IsForbidden(gap.Err) {
			a.ui.Warning("you may not list %s%s: that part of the tree is incomplete", gap.Resource, where)
			continue
		}
		a.ui.Failure("listing %s%s: %s", gap.Resource, where, gap.Err)
		failed = errReported
	}
	return failed
}
