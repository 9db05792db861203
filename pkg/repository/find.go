package repository

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/inputs"
)

// Object returns an object that the cluster applies, or that Options.Find returns. It renders the Kustomizations that may
// apply it, and returns build.ErrNotFound if none does.
func (g *Graph) Object(wanted controllers.ID) (*unstructured.Unstructured, error) {
	there := func(*node) bool { return g.found.objects[wanted].by != nil }
	if !there(nil) && !g.found.absent[wanted] {
		complete, err := g.expand([]string{wanted.Name}, there)
		if err != nil {
			return nil, err
		}
		g.found.absent[wanted] = complete && !there(nil)
	}
	switch {
	case there(nil):
		return g.found.objects[wanted].Unstructured, nil
	case g.Find != nil:
		return g.Find(g.ctx, wanted)
	}
	return nil, build.ErrNotFound
}

// expand renders the Kustomizations that may apply an object with all of the words, parents first, and calls visit for
// every Kustomization until it returns true. It returns false if a Kustomization was being rendered at the same time.
func (g *Graph) expand(words []string, visit func(*node) bool) (complete bool, err error) {
	busy, before := false, g.cycles
	for i := 0; i < len(g.found.nodes); i++ { // nodes grows in the loop
		if g.Err() != nil {
			return false, g.Err()
		}
		n := g.found.nodes[i]
		busy = busy || n.state == building
		if n.state == pending && mayApply(g, n, words) {
			_, _ = g.build(n) // following it reports the error
		}
		if visit(n) {
			g.cycles = before
			return true, nil
		}
	}
	if busy {
		g.cycles++
	}
	return g.cycles == before, nil
}

// mayApply reports whether an owner that is not rendered may directly or indirectly apply an object with all of the
// words.
func mayApply(g *Graph, n *node, words []string) bool {
	if operator.Renders(n.owner) {
		return true // its templates contain only parts of names
	}
	if !findInputs(g, n) {
		return false
	}
	return n.inputs.Parent() || n.inputs.Contains(words)
}

// findInputs finds the inputs of a Kustomization. It returns false if the content of its source is not available.
func findInputs(g *Graph, n *node) bool {
	if n.inputs == nil {
		tree, err := g.Content(build.SourceOf(n.owner))
		if err != nil {
			return false
		}
		n.inputs = inputs.New(tree, tree)
		n.inputs.Kustomization(n.owner, folderOf(g, n.owner))
	}
	return true
}

// Directory returns the content of the source of a Kustomization, and the directory that the Kustomization builds.
func Directory(g *Graph, ks *unstructured.Unstructured) (Tree, string, error) {
	tree, err := g.Content(build.SourceOf(ks))
	return tree, folderOf(g, ks), err
}

// Files returns the source files that a Kustomization build may read.
func Files(g *Graph, ks *unstructured.Unstructured) []string {
	n := g.found.byID[controllers.IDOf(ks.Object)]
	if n == nil || operator.Renders(n.owner) || !findInputs(g, n) {
		return nil
	}
	return n.inputs.Read()
}
