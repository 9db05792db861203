package delete

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// consequence describes the effects of deleting an object, and whether it is recreated.
func consequence(t objref.Target, suspendFirst bool) string {
	text := effect(t, suspendFirst)
	if owner, ok := recreator(t.Object); ok {
		text += fmt.Sprintf("; %s applies the object and will recreate it", owner)
	}
	return text
}

func effect(t objref.Target, suspendFirst bool) string {
	managed := controllers.Managed(t.Object)
	inventory := tally(managed)
	suspended := suspendFirst || t.Kind.Suspension.Is(t.Object)
	switch k := t.Kind; {
	case k.Release:
		if suspended {
			return "its release is kept, because the HelmRelease is suspended" + after(inventory)
		}
		return "its release is uninstalled" + after(inventory) + nested(managed)
	case k.Applies():
		return kustomizationEffect(t.Object, inventory, nested(managed), suspended)
	case k.Family == "source" || k.Family == "artifact":
		return "resources deployed from it are kept, but no longer updated"
	case k.Family == "image" && k.Fetch.Address != "":
		return "its image policies stop selecting new tags"
	default:
		return "nothing else is deleted with it"
	}
}

func kustomizationEffect(o controllers.Object, inventory, nested string, suspended bool) string {
	policy := controllers.Path{"spec.deletionPolicy"}.String(o)
	prune := controllers.Path{"spec.prune"}.String(o) == "true"
	deletes := policy == "Delete" || policy == "WaitForTermination" || prune && policy != "Orphan"
	switch {
	case inventory == "":
		return "it has applied no resources"
	case suspended:
		return "its resources are kept, because the Kustomization is suspended: " + inventory
	case !deletes:
		return "its resources are kept, because pruning is disabled: " + inventory
	default:
		return "its resources are deleted: " + inventory + nested
	}
}

// after returns a text preceded by a colon, or "".
func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// tally counts objects by kind, the most frequent first.
func tally(objects []controllers.ID) string {
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

// nested returns the note that the inventories of applied Flux objects are
// deleted as well.
func nested(objects []controllers.ID) string {
	for _, o := range objects {
		if k, ok := o.Flux(); ok && k.Applies() {
			return "; the resources of a nested " + o.Kind + " are deleted as well"
		}
	}
	return ""
}

// installsFlux reports whether an object is the Kustomization that bootstrap creates, or another one that has applied
// Flux.
func installsFlux(t objref.Target, namespace string) bool {
	if t.Kind.Kind != controllers.Kustomization {
		return false
	}
	return t.Name == namespace && t.Namespace == namespace || slices.ContainsFunc(controllers.Managed(t.Object), func(o controllers.ID) bool {
		return o.Kind == "CustomResourceDefinition" && o.Name == t.Kind.CRD()
	})
}

// recreator returns the owner that applies a deleted object again in its next
// reconciliation.
func recreator(o controllers.Object) (controllers.ID, bool) {
	owner, ok := controllers.Manager(o)
	k, _ := owner.Flux()
	return owner, ok && k.Drift == nil
}
