package tree_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// waiting is the graph of Kustomizations that are not ready, each of which waits for others.
func waiting(needs [][]int) *tree.Graph {
	var objects []controllers.Object
	for i, to := range needs {
		var dependsOn []any
		for _, n := range to {
			dependsOn = append(dependsOn, map[string]any{"name": fmt.Sprint("k", n)})
		}
		objects = append(objects, controllers.Object{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": map[string]any{"name": fmt.Sprint("k", i), "namespace": "apps"}, "spec": map[string]any{"dependsOn": dependsOn},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "x", "message": "m"}}},
		})
	}
	return tree.NewGraph(objects, func(controllers.ID) bool { return true })
}

func named(t *testing.T, g *tree.Graph, i int) *tree.Vertex {
	t.Helper()
	v := g.Vertex(kindObject(t, "Kustomization", "apps", fmt.Sprint("k", i)))
	if v == nil {
		t.Fatalf("no vertex k%d", i)
	}
	return v
}

// ends returns the ends of the chains that begin at an object.
func ends(needs [][]int, from int) []string {
	seen, found := map[int]bool{from: true}, []string{}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		if at := queue[0]; len(needs[at]) == 0 && at != from {
			found = append(found, fmt.Sprint("Kustomization/apps/k", at))
		}
		for _, to := range needs[queue[0]] {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestBlockedBy checks that in graphs with and without cycles, BlockedBy are the ends of an
// object's chains, and Blocks is its inverse.
func TestBlockedBy(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) // the same graphs in each run
	for range 300 {
		needs := make([][]int, 1+random.IntN(12))
		for i := range needs {
			for range random.IntN(4) {
				needs[i] = append(needs[i], random.IntN(len(needs)))
			}
		}
		g := waiting(needs)
		for i := range needs {
			v, got := named(t, g, i), []string{}
			for _, o := range v.BlockedBy {
				got = append(got, o.String())
				if !slices.Contains(g.Blocks(o), v.Object) {
					t.Errorf("%v: %s is not among what %s blocks", needs, v.Object, o)
				}
			}
			slices.Sort(got)
			if want := ends(needs, i); !slices.Equal(got, want) || v.MoreBlockers {
				t.Errorf("%v: k%d is blocked by %v, want %v", needs, i, got, want)
			}
			for _, o := range g.Blocks(v.Object) {
				if !slices.Contains(g.Vertex(o).BlockedBy, v.Object) {
					t.Errorf("%v: %s is among what %s blocks", needs, o, v.Object)
				}
			}
		}
	}
}

// TestLargeGraphs checks that a graph of 20,000 objects has lists that do not grow with the square
// of it.
func TestLargeGraphs(t *testing.T) {
	t.Parallel()
	const n = 20_000
	chain, back, hub := make([][]int, n), make([][]int, n), make([][]int, n)
	for i := range n - 1 {
		chain[i] = []int{i + 1}
		back[i] = []int{i + 1, 0}
		if i < n/2 {
			hub[i] = []int{n - 1}
		} else {
			hub[n-1] = append(hub[n-1], i)
		}
	}
	if v := named(t, waiting(chain), 0); len(v.BlockedBy) != 1 || v.BlockedBy[0].Name != fmt.Sprint("k", n-1) {
		t.Errorf("the first object of a chain is blocked by %v", v.BlockedBy)
	}
	if g := waiting(back); len(g.Cycles) != 100 || !g.MoreCycles {
		t.Errorf("%d cycles, more: %v", len(g.Cycles), g.MoreCycles)
	}
	g := waiting(hub)
	if v := named(t, g, 0); len(v.BlockedBy) != 100 || !v.MoreBlockers {
		t.Errorf("blocked by %d objects, more: %v", len(v.BlockedBy), v.MoreBlockers)
	}
	if all := g.Blocks(named(t, g, n-2).Object); len(all) != n/2+1 {
		t.Errorf("the last root cause blocks %d objects", len(all))
	}
}

// TestDeepTrees checks that the trees of a chain are no deeper than their lines are readable, and
// that they have all objects.
func TestDeepTrees(t *testing.T) {
	t.Parallel()
	needs := make([][]int, 1000)
	for i := range len(needs) - 1 {
		needs[i] = []int{i + 1}
	}
	found := map[string]bool{}
	var walk func(n *tree.Node, depth int)
	walk = func(n *tree.Node, depth int) {
		found[n.Object.Name] = true
		if depth > 101 {
			t.Fatalf("%s is at level %d", n.Object, depth)
		}
		if deeper := strings.Contains(n.Message, "not shown here"); deeper != (depth == 101) {
			t.Errorf("%s at level %d: %s", n.Object, depth, n.Message)
		}
		for _, child := range n.Children {
			walk(child, depth+1)
		}
	}
	for _, root := range waiting(needs).Trees() {
		walk(root, 1)
	}
	if len(found) != len(needs) {
		t.Errorf("%d objects, want %d", len(found), len(needs))
	}
}

// TestOneEdge checks that two objects have one edge: a HelmChart is the source of its HelmRelease, whose owner labels it has.
func TestOneEdge(t *testing.T) {
	t.Parallel()
	conditions := []any{map[string]any{"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "m"}}
	g := tree.NewGraph([]controllers.Object{
		{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": "web", "namespace": "apps"},
			"spec":   map[string]any{"chart": map[string]any{"spec": map[string]any{"sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}}},
			"status": map[string]any{"helmChart": "apps/apps-web", "conditions": conditions},
		},
		{
			"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
			"metadata": map[string]any{"name": "apps-web", "namespace": "apps", "labels": map[string]any{"helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "apps"}},
			"spec":     map[string]any{"sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}},
		},
	}, func(controllers.ID) bool { return true })
	if len(g.Edges) != 2 {
		t.Errorf("got %v, want the chart as the source of the release, and the repository as that of the chart", g.Edges)
	}
}
