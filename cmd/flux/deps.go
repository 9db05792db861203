package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/diagram"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

type depsOptions struct {
	everywhere bool
	path       string
	reverse    bool
	format     string
}

// depsFormats are the values of --output.
func depsFormats() []string { return append([]string{"wide", "json", "yaml"}, diagram.Formats()...) }

func newDeps(a *app) *cobra.Command {
	o := &depsOptions{}
	cmd := &cobra.Command{
		Use:   "deps [kind name]",
		Short: "Show the dependency graph",
		Long: `Show which objects of Flux need which others: dependsOn, sources, charts,
providers and the chains of images. What is not ready is shown with the objects
at the root of it, and objects that wait for each other are an error.

With --path the objects are those in the files of a folder, and no cluster is asked.`,
		Example: `  # Who needs what in a namespace, or everywhere
  flux deps -n apps
  flux deps -A

  # What a Kustomization needs, and who needs it
  flux deps kustomization my-app
  flux deps kustomization my-app --reverse

  # A picture
  flux deps -A -o svg > deps.svg
  flux deps -A -o dot | dot -Tpng > deps.png

  # In a pull request: fail on objects that wait for each other
  flux deps --path ./clusters/production`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: a.completeObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.deps(cmd, o, args) },
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "the objects of all namespaces")
	fs.StringVar(&o.path, "path", "", "read the objects from the manifests of a folder instead of the cluster")
	fs.BoolVar(&o.reverse, "reverse", false, "show who needs an object instead of what it needs")
	fs.StringVarP(&o.format, "output", "o", "", "print "+strings.Join(depsFormats(), "|")+"; wide adds status, and is the default on a terminal")
	completeFlag(cmd, "output", cobra.FixedCompletions(depsFormats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) deps(cmd *cobra.Command, o *depsOptions, args []string) error {
	if o.format != "" && !slices.Contains(depsFormats(), o.format) {
		return fmt.Errorf("output format %q is not known: use %s", o.format, strings.Join(depsFormats(), ", "))
	}
	k, ref, err := fluxObject(args)
	if err != nil {
		return err
	}
	name := ref.name
	if o.reverse && name == "" {
		return hinted("flux deps kustomization my-app --reverse", "--reverse needs an object")
	}
	namespace, err := a.namespace(cmd)
	if err != nil {
		return err
	}
	namespace = ref.in(namespace)
	g, gaps, err := a.graph(cmd, o, namespace, name != "")
	if err != nil {
		return err
	}
	trees := g.Trees
	if name != "" {
		object := tree.Object{Namespace: namespace, Name: name, GroupKind: schema.GroupKind{Group: k.Group, Kind: k.Kind}}
		if v := g.Vertex(object); v == nil || v.Missing {
			return &notFoundError{target: target{kind: k, namespace: namespace, name: name}}
		}
		g = g.Around(object)
		trees = func() []*tree.Node {
			if o.reverse {
				return []*tree.Node{g.Reversed().Tree(object)}
			}
			return []*tree.Node{g.Tree(object)}
		}
	}
	incomplete := a.reportGaps(gaps)
	if len(gaps) > 0 {
		incomplete = errReported // an object that may not be seen may need another
	}
	if len(g.Vertices) > 0 || incomplete == nil {
		if err := a.depsAnswer(o, g, trees); err != nil {
			return err
		}
	}
	return errors.Join(a.depsTrouble(g), incomplete)
}

// graph reads the objects of a folder or of the cluster. One object may need
// others in any namespace, so all of them are read for it.
func (a *app) graph(cmd *cobra.Command, o *depsOptions, namespace string, one bool) (*tree.Graph, []tree.Gap, error) {
	if o.path != "" {
		g, err := a.graphOfFolder(cmd.Context(), o.path, namespace)
		return g, nil, err
	}
	client, err := a.cluster()
	if err != nil {
		return nil, nil, err
	}
	if o.everywhere || one {
		namespace = ""
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	g, gaps, err := tree.Dependencies(ctx, client.Config, namespace)
	if err == nil && len(g.Vertices) == 0 && len(gaps) == 0 {
		err = checkInstalled(ctx, client, namespace)
	}
	return g, gaps, err
}

// checkInstalled returns an error where the cluster does not serve the kinds of Flux.
func checkInstalled(ctx context.Context, client *kube.Client, namespace string) error {
	source := controllers.Kinds[0]
	err := client.With(ctx, source, func(r kube.Resource) error {
		return client.Metadata(ctx, r, kube.Selection{Namespace: namespace}, func(controllers.Object) {})
	})
	var missing *kube.MissingKindError
	if errors.As(err, &missing) {
		return notServed(controllers.Kinds)
	}
	return err
}

// graphOfFolder reads manifests; one without a namespace gets the given one.
func (a *app) graphOfFolder(ctx context.Context, path, namespace string) (*tree.Graph, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, errors.Join(err, fmt.Errorf("--path %s is no folder", path))
	}
	found, err := build.Search(ctx, workspace.Folder(path), []string{".fluxcd.io/"}, func(u *unstructured.Unstructured) bool {
		_, ok := controllers.KindOf(u.GroupVersionKind().Group, u.GetKind())
		return ok
	})
	if err != nil {
		return nil, err
	}
	var objects []controllers.Object
	for _, m := range found {
		if m.GetNamespace() == "" {
			m.SetNamespace(namespace)
		}
		objects = append(objects, m.Object)
	}
	return tree.Needs(objects, false, func(tree.Object) bool { return true }), nil
}

func (a *app) depsAnswer(o *depsOptions, g *tree.Graph, trees func() []*tree.Node) error {
	switch o.format {
	case "json", "yaml":
		return a.encode(o.format, graphReportOf(g))
	case "", "wide":
		return a.depsText(o, trees())
	default:
		return depsDiagram(g).Draw(a.answer(o.format), o.format)
	}
}

func (a *app) depsText(o *depsOptions, trees []*tree.Node) error {
	if len(trees) == 0 {
		a.ui.Success("no object needs another")
		return nil
	}
	if o.format == "wide" || ui.IsTerminal(a.out) {
		style := a.treeStyle()
		style.Bare, style.Fold = true, o.format == "wide"
		return tree.Table(a.out, trees, style)
	}
	for _, root := range trees {
		if err := tree.Text(a.out, root); err != nil {
			return err
		}
	}
	return nil
}

// depsTrouble reports what can never become ready, and names what is missing.
func (a *app) depsTrouble(g *tree.Graph) error {
	for _, v := range g.Vertices {
		if v.Missing {
			a.ui.Warning("%s is not there, and %s needs it", v.Object, g.To(v.Object)[0].From)
		}
	}
	for _, cycle := range g.Cycles {
		words := make([]string, 0, len(cycle)+1)
		for _, o := range append(slices.Clone(cycle), cycle[0]) {
			words = append(words, o.String())
		}
		a.ui.Failure("these wait for each other: %s", strings.Join(words, " → "))
	}
	if len(g.Cycles) > 0 {
		return errReported
	}
	return nil
}

// depsDiagram has the arrows from what is needed to who needs it, which is the
// way that changes take.
func depsDiagram(g *tree.Graph) diagram.Diagram {
	d := diagram.Diagram{Title: "Dependencies"}
	for _, v := range g.Vertices {
		if len(g.From(v.Object)) == 0 && len(g.To(v.Object)) == 0 {
			continue
		}
		box := diagram.Box{ID: v.Object.String(), Head: v.Object.GroupKind.Kind, Text: v.Object.Namespace + "/" + v.Object.Name, Note: v.Message, Status: boxStatus(v.Status())}
		if v.Missing {
			box.Note = "not there"
		}
		d.Boxes = append(d.Boxes, box)
	}
	for _, e := range g.Edges {
		d.Arrows = append(d.Arrows, diagram.Arrow{From: e.To.String(), To: e.From.String(), Label: e.Relation})
	}
	return d
}

// graphReport is what deps tells a script.
type graphReport struct {
	Objects      []vertexReport `json:"objects"`
	Dependencies []edgeReport   `json:"dependencies"`
	Cycles       [][]objectName `json:"cycles"`
}

type vertexReport struct {
	objectName
	Ready     string       `json:"ready,omitempty"`
	Message   string       `json:"message,omitempty"`
	Suspended bool         `json:"suspended"`
	Missing   bool         `json:"missing"`
	BlockedBy []objectName `json:"blockedBy,omitempty"`
}

type edgeReport struct {
	From     objectName `json:"from"`
	To       objectName `json:"to"`
	Relation string     `json:"relation"`
}

func graphReportOf(g *tree.Graph) graphReport {
	r := graphReport{Objects: []vertexReport{}, Dependencies: []edgeReport{}, Cycles: [][]objectName{}}
	for _, v := range g.Vertices {
		r.Objects = append(r.Objects, vertexReportOf(v))
	}
	for _, e := range g.Edges {
		r.Dependencies = append(r.Dependencies, edgeReport{named(e.From), named(e.To), e.Relation})
	}
	for _, cycle := range g.Cycles {
		r.Cycles = append(r.Cycles, names(cycle))
	}
	return r
}

func vertexReportOf(v *tree.Vertex) vertexReport {
	return vertexReport{named(v.Object), v.Ready, v.Message, v.Suspended, v.Missing, names(v.BlockedBy)}
}

func names(objects []tree.Object) []objectName {
	var all []objectName
	for _, o := range objects {
		all = append(all, named(o))
	}
	return all
}
