package delete

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// consequence says what the deletion of an object takes with it.
func consequence(t objref.Target, suspendFirst bool) string {
	return effect(t, suspendFirst) + remade(t.Object)
}

func effect(t objref.Target, suspendFirst bool) string {
	managed := t.Kind.Managed(t.Object)
	inventory := tally(managed)
	suspended := suspendFirst || t.Kind.Suspension.Is(t.Object)
	switch t.Kind.Kind {
	case "Kustomization":
		return kustomizationEffect(t.Object, inventory, nested(managed), suspended)
	case "HelmRelease":
		if suspended {
			return "its release stays on the cluster, as it is suspended" + parenthesis(inventory)
		}
		return "its release is uninstalled, with everything in it" + parenthesis(inventory) + nested(managed)
	case "ImageRepository":
		return "the policies that read it select no new tags"
	case "Alert", "Provider", "Receiver", "ImagePolicy", "ImageUpdateAutomation":
		return "nothing else is deleted with it"
	default:
		return "what was deployed from it stays, and is not updated any more"
	}
}

func kustomizationEffect(o controllers.Object, inventory, nested string, suspended bool) string {
	policy := controllers.Path{"spec.deletionPolicy"}.String(o)
	prune := controllers.Path{"spec.prune"}.String(o) == "true"
	deletes := policy == "Delete" || policy == "WaitForTermination" || prune && policy != "Orphan"
	switch {
	case inventory == "":
		return "it has applied nothing"
	case suspended:
		return "what it has applied stays, as it is suspended: " + inventory
	case !deletes:
		return "what it has applied stays, as it does not prune: " + inventory
	default:
		return "deletes what it has applied: " + inventory + nested
	}
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// tally counts objects by kind, the most frequent first.
func tally(objects []controllers.Target) string {
	count := map[string]int{}
	var kinds []string
	for _, o := range objects {
		if count[o.Kind]++; count[o.Kind] == 1 {
			kinds = append(kinds, o.Kind)
		}
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	for i, kind := range kinds {
		kinds[i] = counted(count[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

func counted(n int, kind string) string { return fmt.Sprintf("%d %s", n, kind) }

// nested reminds of what the inventory does not show.
func nested(objects []controllers.Target) string {
	for _, o := range objects {
		if o.Kind == "Kustomization" || o.Kind == "HelmRelease" {
			return "; what a " + o.Kind + " among them has deployed goes with it"
		}
	}
	return ""
}

// remade warns of a deletion that will not last.
func remade(o controllers.Object) string {
	if by := maker(o); by != "" {
		return by + " and will make it anew"
	}
	return ""
}
