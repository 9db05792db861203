// Package deps implements the deps command.
package deps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/diagram"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/treeview"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/graphviz"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

type options struct {
	everywhere bool
	path       string
	reverse    bool
	format     string
}

// formats returns the values of --output.
func formats() []string { return append([]string{"wide", "json", "yaml"}, diagram.Formats()...) }

// NewCommand returns the deps command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:         "deps [kind name]",
		Short:       "Show the dependency graph",
		Annotations: command.Exits{clierr.ExitFailed: "failure, or a circular dependency was found"}.Annotations(),
		Long: `Show the dependency graph of Flux resources: dependsOn, sources, charts,
providers and image automation. Resources that are not ready are shown with their
root causes. A circular dependency is an error.

With --path, the resources are read from the manifests in a directory, without
cluster access.`,
		Example: `  # Show the dependencies in one or all namespaces
  flux deps -n apps
  flux deps -A

  # Show the dependencies and the dependents of a Kustomization
  flux deps kustomization my-app
  flux deps kustomization my-app --reverse

  # Write the graph as an HTML page with search and failures, or as an image
  flux deps -A -o html > deps.html
  flux deps -A -o svg > deps.svg
  flux deps -A -o dot | dot -Tpng > deps.png

  # Fail a pull request on circular dependencies
  flux deps --path ./clusters/production`,
		Args:              cobra.MaximumNArgs(3),
		ValidArgsFunction: complete.Object(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, args) })
		},
	}
	fs := cmd.Flags()
	fs.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "include the objects of all namespaces")
	fs.StringVar(&o.path, "path", "", "read the objects from the manifests in a directory instead of the cluster")
	fs.BoolVar(&o.reverse, "reverse", false, "show the dependents of an object instead of its dependencies")
	command.AddOutput(fs, &o.format, "output format; wide adds status and is the default on a terminal", formats()...)
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	ref, err := objref.ParseCommandLine(cmd.CommandPath(), args)
	if err != nil {
		return err
	}
	name := ref.Name
	var k controllers.Kind
	if name != "" {
		if k, err = ref.Kind(); err != nil {
			return err
		}
	}
	if o.reverse && name == "" {
		return hint.Errorf("flux deps kustomization my-app --reverse", "--reverse requires an object")
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return err
	}
	namespace = ref.NamespaceOr(namespace)
	g, gaps, err := graph(a, cmd, o, namespace, name != "")
	if err != nil {
		return err
	}
	trees := g.Trees
	if name != "" {
		object := k.ID(namespace, name)
		if v := g.Vertex(object); v == nil || v.Missing {
			return &objref.NotFoundError{Target: objref.Target{Kind: k, Namespace: namespace, Name: name}}
		}
		g = g.Around(object)
		trees = func() []*tree.Node {
			if o.reverse {
				return []*tree.Node{g.Reversed().Tree(object)}
			}
			return []*tree.Node{g.Tree(object)}
		}
	}
	incomplete := treeview.ReportGaps(a, gaps)
	if len(gaps) > 0 {
		incomplete = clierr.ErrReported // an object without read permission may have dependencies
	}
	if len(g.Vertices) > 0 || incomplete == nil {
		if err := depsAnswer(cmd.Context(), a, o, g, trees); err != nil {
			return err
		}
	}
	return errors.Join(depsTrouble(a, g), incomplete)
}

// graph reads the objects from a directory or the cluster. Dependencies may be in any namespace, so
// a single object requires reading all objects.
func graph(a *app.App, cmd *cobra.Command, o *options, namespace string, one bool) (*tree.Graph, []tree.Gap, error) {
	if o.path != "" {
		g, err := graphOfDirectory(cmd.Context(), o.path, namespace)
		return g, nil, err
	}
	client, err := a.Client()
	if err != nil {
		return nil, nil, err
	}
	if o.everywhere || one {
		namespace = ""
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	g, gaps, err := tree.Dependencies(ctx, client, namespace)
	if err == nil && len(g.Vertices) == 0 && len(gaps) == 0 {
		err = kinds.CheckInstalled(ctx, client, namespace)
	}
	return g, gaps, err
}

// graphOfDirectory reads manifests and sets namespace on objects without one.
func graphOfDirectory(ctx context.Context, path, namespace string) (*tree.Graph, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, errors.Join(err, fmt.Errorf("--path %s is not a directory", path))
	}
	found, err := sourcetree.Search(ctx, filetree.Directory(path), []string{"fluxcd."}, func(u *unstructured.Unstructured) bool {
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
	return tree.FileGraph(objects), nil
}

func depsAnswer(ctx context.Context, a *app.App, o *options, g *tree.Graph, trees func() []*tree.Node) error {
	switch o.format {
	case "json", "yaml":
		return a.Encode(o.format, graphReportOf(g))
	case "", "wide":
		return depsText(a, o, trees())
	default:
		return depsDiagram(g).Draw(ctx, a.Output(o.format), o.format, graphviz.New(a.Helpers))
	}
}

func depsText(a *app.App, o *options, trees []*tree.Node) error {
	if len(trees) == 0 {
		a.UI.Success("no dependencies found")
		return nil
	}
	if o.format == "wide" || ui.IsTerminal(a.Out) {
		style := treeview.Style(a)
		style.Bare, style.Fold = true, o.format == "wide"
		return tree.Table(a.Out, trees, style)
	}
	for _, root := range trees {
		if err := tree.Text(a.Out, root); err != nil {
			return err
		}
	}
	return nil
}

// depsTrouble reports missing and circular dependencies.
func depsTrouble(a *app.App, g *tree.Graph) error {
	for _, v := range g.Vertices {
		if v.Missing {
			a.UI.Warning("%s not found (required by %s)", v.Object, g.To(v.Object)[0].From)
		}
	}
	for _, cycle := range g.Cycles {
		a.UI.Failure("circular dependency: %s", cycleText(cycle))
	}
	if g.MoreCycles {
		a.UI.Warning("more circular dependencies exist: only the first %d are listed", len(g.Cycles))
	}
	if len(g.Cycles) > 0 {
		return clierr.ErrReported
	}
	return nil
}

// maxCycle is the maximum number of listed objects of a circular dependency.
const maxCycle = 20

// cycleText lists the objects of a circular dependency, with the first one repeated at the end.
func cycleText(cycle []controllers.ID) string {
	var words []string
	for _, o := range append(slices.Clone(cycle), cycle[0]) {
		words = append(words, o.String())
	}
	if more := len(words) - maxCycle; more > 0 {
		words = slices.Concat(words[:maxCycle-2], []string{fmt.Sprintf("… %d more …", more)}, words[len(words)-2:])
	}
	return strings.Join(words, " → ")
}

// depsDiagram returns a diagram whose arrows point from dependencies to
// dependents, the direction in which changes propagate.
func depsDiagram(g *tree.Graph) diagram.Diagram {
	d := diagram.Diagram{Title: "Dependencies", Caption: "Arrows point from an object to the objects that depend on it."}
	for _, v := range g.Vertices {
		if len(g.From(v.Object)) == 0 && len(g.To(v.Object)) == 0 {
			continue
		}
		box := diagram.Box{ID: v.Object.String(), Head: v.Object.Kind, Text: v.Object.Namespace + "/" + v.Object.Name, Note: cmp.Or(g.Why(v), v.Message), Status: treeview.BoxStatus(v.Status()), Blocked: len(v.BlockedBy) > 0}
		if v.Missing {
			box.Note = "not found"
		}
		d.Boxes = append(d.Boxes, box)
	}
	for _, e := range g.Edges {
		d.Arrows = append(d.Arrows, diagram.Arrow{From: e.To.String(), To: e.From.String(), Label: e.Relation})
	}
	return d
}

// graphReport is the JSON and YAML output.
type graphReport struct {
	Objects      []report.Vertex    `json:"objects"`
	Dependencies []edgeReport       `json:"dependencies"`
	Cycles       [][]controllers.ID `json:"cycles"`
	MoreCycles   bool               `json:"moreCycles,omitempty"`
}

type edgeReport struct {
	From     controllers.ID `json:"from"`
	To       controllers.ID `json:"to"`
	Relation string         `json:"relation"`
}

func graphReportOf(g *tree.Graph) graphReport {
	r := graphReport{Objects: []report.Vertex{}, Dependencies: []edgeReport{}, Cycles: [][]controllers.ID{}, MoreCycles: g.MoreCycles}
	for _, v := range g.Vertices {
		r.Objects = append(r.Objects, report.VertexOf(v))
	}
	for _, e := range g.Edges {
		r.Dependencies = append(r.Dependencies, edgeReport{e.From, e.To, e.Relation})
	}
	r.Cycles = append(r.Cycles, g.Cycles...)
	return r
}
