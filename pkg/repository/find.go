package repository

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Object returns an object that the cluster applies, or that Options.Find returns. It renders the Kustomizations that may
// apply it, and returns build.ErrNotFound if none does.
func (g *Graph) Object(wanted controllers.ID) (*unstructured.Unstructured, error) {
	found, err := g.applied(wanted)
	if errors.Is(err, build.ErrNotFound) && g.Find != nil {
		return g.Find(g.ctx, wanted)
	}
	return found, err
}

// applied returns an object that the cluster applies.
func (g *Graph) applied(wanted controllers.ID) (*unstructured.Unstructured, error) {
	if found := g.objects[wanted]; found.by != nil {
		return found.Unstructured, nil
	}
	if g.absent[wanted] {
		return nil, build.ErrNotFound
	}
	complete, err := g.expand([]string{wanted.Name}, func(*node) bool { return g.objects[wanted].by != nil })
	if err != nil {
		return nil, err
	}
	if found := g.objects[wanted]; found.by != nil {
		return found.Unstructured, nil
	}
	if complete {
		g.absent[wanted] = true
	}
	return nil, build.ErrNotFound
}

// each calls visit for the objects of all Kustomizations that may apply an object with all of the words, until visit
// returns true.
func (g *Graph) each(words []string, visit func(*unstructured.Unstructured) bool) error {
	_, err := g.expand(words, func(n *node) bool {
		if n.built == nil {
			return false
		}
		for _, o := range n.built.Build.Unstructured() {
			if visit(o) {
				return true
			}
		}
		return false
	})
	return err
}

// expand renders the Kustomizations that may apply an object with all of the words, parents first, and calls visit for
// every Kustomization until it returns true. It reports whether no Kustomization was being rendered meanwhile.
func (g *Graph) expand(words []string, visit func(*node) bool) (complete bool, err error) {
	busy, before := false, g.cycles
	for i := 0; i < len(g.nodes); i++ { // nodes grows in the loop
		if g.Err() != nil {
			return false, g.Err()
		}
		n := g.nodes[i]
		busy = busy || n.state == building
		if n.state == pending && g.mayApply(n, words) {
			_, _ = g.build(n) // its error is reported when it is followed
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

// mayApply reports whether a Kustomization that is not rendered may apply an object with all of the words, or
// Kustomizations that do.
func (g *Graph) mayApply(n *node, words []string) bool {
	if n.inputs == nil {
		tree, err := g.Content(build.SourceOf(n.owner))
		if err != nil {
			return false
		}
		n.inputs = newInputs(tree, tree)
		n.inputs.kustomization(n.owner, g.pathOf(n.owner))
		n.leaf = n.inputs.leaf
	}
	return !n.leaf || n.inputs.contains(words)
}
