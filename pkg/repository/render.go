package repository

import (
	"context"
	"errors"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/layout"
)

// count counts the objects of a rendering. It ends the graph if there are too many.
func (g *Graph) count(owner *unstructured.Unstructured, result *build.Result) error {
	if g.rendered += len(result.Objects); g.rendered > maxObjects {
		g.err = &budget.ExceededError{Name: controllers.IDOf(owner.Object).String(), Fact: fmt.Sprintf("the Kustomizations of one revision have more than %d objects", maxObjects)}
	}
	return g.err
}

// take adds the objects of a node to the graph.
func (g *Graph) take(n *node) {
	g.found.take(n)
	if g.Rendered != nil {
		g.Rendered(n.built.Build)
	}
}

// Render renders a Kustomization, ResourceSet or FluxInstance and adds its objects to the graph. It returns an
// operator.UnknownError if inputs of a ResourceSet are available only on a cluster.
func (g *Graph) Render(owner *unstructured.Unstructured) (*Rendering, error) {
	return g.build(g.found.add(owner))
}

// Adopt reuses the rendering of a Kustomization with the same inputs at another revision.
func (g *Graph) Adopt(ks *unstructured.Unstructured, built *Rendering) {
	if n := g.found.add(ks); n.state == pending {
		n.state, n.built = done, built
		g.take(n)
	}
}

func (g *Graph) build(n *node) (*Rendering, error) {
	switch {
	case n.state == building:
		g.cycles++
		return nil, unavailable("%s depends on an object that it applies", controllers.IDOf(n.owner.Object))
	case n.state == done:
		return n.built, n.err
	case g.Err() != nil:
		return nil, g.Err()
	}
	n.state, n.attempts = building, n.attempts+1
	before := g.cycles
	render, reads := g.kustomize, &reader{graph: g, lookup: g.lookup(n)}
	if operator.Renders(n.owner) {
		render = func(owner *unstructured.Unstructured, reads *reader) (*build.Result, error) {
			return operate(g, owner, reads)
		}
	}
	result, err := render(n.owner, reads)
	n.state, n.err = done, err
	if g.cycles != before && n.attempts < maxAttempts {
		n.state = pending
	}
	if err != nil {
		return nil, err
	}
	if err := g.count(n.owner, result); err != nil {
		return nil, err
	}
	n.built = &Rendering{Owner: n.owner, Build: result}
	g.take(n)
	return n.built, nil
}

// kustomize renders the objects of a Kustomization. Without a lookup, variables are not substituted.
func (g *Graph) kustomize(ks *unstructured.Unstructured, reads *reader) (*build.Result, error) {
	id, source := controllers.IDOf(ks.Object), build.SourceOf(ks)
	tree, err := g.Content(source)
	options := g.Build
	options.Twin = g.found.objects[id].Twin
	if err != nil && options.Twin != nil {
		return nil, build.Hide(err)
	}
	if err != nil {
		return nil, &SourceError{Owner: id, Source: source, err: err}
	}
	options.Missing, options.Lookup = reads.missing(ks), nil
	if reads.lookup != nil {
		options.Lookup = reads
	}
	if !isRoot(g, ks) {
		options.Path, options.Ignore, options.Filter = "", nil, false
	}
	rendered, err := g.Memo.render(reads, ks, options.Twin, g.Memo.keyOf(tree, options), func() (*Rendering, error) {
		result, err := build.Kustomization(g.ctx, tree, ks, options)
		return &Rendering{Owner: ks, Build: result}, err
	})
	var folder *sourcetree.PathError
	if errors.As(err, &folder) {
		err = fmt.Errorf("building %s: %w%s", id, err, relocation(g, ks))
	}
	if err != nil {
		return nil, err
	}
	return rendered.Build, nil
}

// lookup returns the ConfigMaps and Secrets that the cluster applies, for the build of a Kustomization. A
// ConfigMap or Secret that the Kustomization itself applies has the values before substitution, as after the
// last reconciliation.
func (g *Graph) lookup(n *node) build.Lookup {
	var own build.Lookup
	return build.LookupFunc(func(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
		data, err := g.Data(ctx, object)
		if n == nil || n.state != building || !errors.Is(err, build.ErrNotFound) {
			return data, err
		}
		if own == nil && operator.Renders(n.owner) {
			return data, err
		}
		if own == nil {
			own = build.FromObjects(nil)
			plain := n.owner.DeepCopy()
			unstructured.RemoveNestedField(plain.Object, "spec", "postBuild")
			if result, err := g.kustomize(plain, &reader{graph: g}); err == nil {
				own = result.Lookup(build.ReadData)
			}
		}
		return own.Data(ctx, object)
	})
}

// MissingValues returns the first ConfigMap or Secret with values of a HelmRelease that is not available, optional or not, and
// whether there is one.
func MissingValues(g *Graph, hr *unstructured.Unstructured) (controllers.ID, bool) {
	for _, object := range build.DataReferences(hr) {
		if _, err := g.Data(g.ctx, object); err != nil {
			return object, true
		}
	}
	return controllers.ID{}, false
}

// Data returns the data of a ConfigMap or Secret.
func (g *Graph) Data(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
	_, err := g.Object(object)
	switch {
	case err == nil:
		return g.found.objects[object].Data(ctx)
	case errors.Is(err, build.ErrNotFound) && g.Build.Lookup != nil:
		return g.Build.Lookup.Data(ctx, object)
	}
	return nil, err
}

// relocation returns the remedy if the directory of a Kustomization exists below another one, from which the artifact of its source
// may have been pushed.
func relocation(g *Graph, ks *unstructured.Unstructured) string {
	source, parent := build.SourceOf(ks), layout.Above(g.Tree, g.Path, folderOf(g, ks))
	if source.Kind == controllers.GitRepository || parent == "" {
		return ""
	}
	return fmt.Sprintf(", but %s does: if the artifact of %s is pushed from %s, set --local-sources %s", path.Join(parent, folderOf(g, ks)), source, parent, hint.Quote(source.String()+"="+parent))
}
