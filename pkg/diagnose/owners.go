package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// contested are the cases of objects that something else of Flux applies, too.
func (inv *inventory) contested(ctx context.Context, s *snapshot) []Case {
	var cases []Case
	owner := targetOf(inv.kind, inv.object)
	others := s.otherOwners(ctx, owner, inv.targets)
	claim := s.claims(ctx)
	for _, t := range inv.targets {
		claims := slices.Clone(others[key(t)])
		for _, other := range labelled(inv.live[t]) {
			if other != owner && !slices.Contains(claims, other) && claim(other, t) {
				claims = append(claims, other)
			}
		}
		if len(claims) == 0 {
			continue
		}
		if len(cases) == namedObjects {
			cases[0].Root.Details = append(cases[0].Root.Details, "more objects of the inventory are applied by others, too")
			cases[0].settle()
			break
		}
		cases = append(cases, contest(owner, t, claims))
	}
	return cases
}

// contest is the case of an object with several appliers.
func contest(owner, t controllers.Target, others []controllers.Target) Case {
	var names []string
	for _, other := range others {
		names = append(names, other.String())
	}
	f := Finding{Object: key(t), Code: "contested"}
	f.Message = fmt.Sprintf("it is applied by %s and by %s: each reverts what the other applies, and either may prune it", owner, strings.Join(names, " and "))
	f.Remedies = []string{"remove it from the source of all but one of them"}
	all := append([]controllers.Target{owner}, others...)
	for _, applier := range all[:min(len(all), mostShown)] {
		if k, _ := controllers.FindKind(applier.Kind); k.Keep.Key != "" {
			f.Remedies = append(f.Remedies, fmt.Sprintf("before it is removed from the source of %s, set its annotation %s there and apply that: without the annotation, %s deletes it", applier, k.Keep, k.Controller))
		}
	}
	first := Finding{Object: owner, Code: "incomplete", Message: "an object in its inventory has another owner, too"}
	return Case{Object: owner, Root: f, Chain: []Finding{first, f}}
}

// labelled are the appliers that the labels of an object name.
func labelled(o controllers.Object) []controllers.Target {
	var owners []controllers.Target
	for _, k := range controllers.Kinds {
		if k.Inventory == nil || k.Family != "" {
			continue
		}
		if name, namespace := kube.Label(o, k.Group+"/name"), kube.Label(o, k.Group+"/namespace"); name != "" && namespace != "" {
			owners = append(owners, controllers.Target{Kind: k.Kind, Namespace: namespace, Name: name})
		}
	}
	return owners
}

// otherOwners are the other objects of the applier's kind whose inventories have
// one of the objects. What applies in another cluster owns none here.
func (s *snapshot) otherOwners(ctx context.Context, owner controllers.Target, targets []controllers.Target) map[controllers.Target][]controllers.Target {
	var wanted []controllers.Target
	for _, t := range targets {
		wanted = append(wanted, key(t))
	}
	owners := map[controllers.Target][]controllers.Target{}
	for _, a := range s.appliersOf(ctx, []controllers.Kind{s.kindOf(owner)}, wanted...) {
		other := targetOf(a.kind, a.object)
		if _, remote := (controllers.Path{"spec.kubeConfig"}).Lookup(a.object); remote || other == owner {
			continue
		}
		for _, t := range a.has {
			owners[t] = append(owners[t], other)
		}
	}
	return owners
}

// claims returns a function that reports whether an applier that a label names
// does apply an object: labels outlive what has set them. It reads each applier
// at most once, and few of them.
func (s *snapshot) claims(ctx context.Context) func(owner, t controllers.Target) bool {
	read := map[controllers.Target]controllers.Object{}
	return func(owner, t controllers.Target) bool {
		o, there := s.objects[owner]
		if !there {
			if o, there = read[owner]; !there && len(read) < inventoryLookups {
				o = s.readOwner(ctx, owner)
				read[owner] = o
			}
		}
		if o == nil {
			return false
		}
		managed := s.kindOf(owner).Managed(o)
		// Releases of an older helm-controller have no inventory.
		return len(managed) == 0 || slices.ContainsFunc(managed, func(m controllers.Target) bool { return key(m) == key(t) })
	}
}

// readOwner reads an object of Flux; nil where that is not possible.
func (s *snapshot) readOwner(ctx context.Context, t controllers.Target) controllers.Object {
	if s.kindOf(t).Kind == "" {
		return nil
	}
	o, err := s.Client.GetKind(ctx, s.kindOf(t), t.Namespace, t.Name)
	if err != nil {
		return nil
	}
	return o
}
