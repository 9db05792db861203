package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// contested returns the cases of objects that another Flux object also applies,
// and a description of what could not be read.
func (inv *inventory) contested(ctx context.Context, s *verifier) (cases []Case, unknown []string) {
	owner := inv.id()
	others, unknown := s.otherOwners(ctx, owner, inv.targets)
	claims := s.newClaims()
	for _, t := range inv.targets {
		appliers := slices.Clone(others[t])
		for _, other := range controllers.Owners(inv.live[t]) {
			if other != owner && !slices.Contains(appliers, other) && claims.has(ctx, other, t) {
				appliers = append(appliers, other)
			}
		}
		if len(appliers) == 0 {
			continue
		}
		if len(cases) == namedObjects {
			cases[0].Root.Details = append(cases[0].Root.Details, "more objects of the inventory have other owners as well")
			cases[0].settle()
			break
		}
		cases = append(cases, contest(owner, t, appliers))
	}
	return cases, append(unknown, claims.unknown...)
}

// contest returns the case of an object with several appliers.
func contest(owner, t controllers.ID, others []controllers.ID) Case {
	var names []string
	for _, other := range others {
		names = append(names, other.String())
	}
	f := Finding{Object: t, Code: "contested"}
	f.Message = fmt.Sprintf("it is applied by %s and by %s: each reverts what the other applies, and either may prune it", owner, strings.Join(names, " and "))
	f.Remedies = []string{"remove it from the source of all but one of them"}
	all := append([]controllers.ID{owner}, others...)
	for _, applier := range all[:min(len(all), mostShown)] {
		if k, _ := applier.Flux(); k.Keep.Key != "" {
			f.Remedies = append(f.Remedies, fmt.Sprintf("before it is removed from the source of %s, set its annotation %s there and apply that: without the annotation, %s deletes it", applier, k.Keep, k.Controller))
		}
	}
	first := Finding{Object: owner, Code: "incomplete", Message: "an object in its inventory has another owner"}
	return Case{Object: owner, Root: f, Chain: []Finding{first, f}}
}

// otherOwners returns the other objects of the applier's kind whose inventories
// contain one of the targets, and a description of what could not be read. It
// ignores objects that apply to another cluster.
func (s *verifier) otherOwners(ctx context.Context, owner controllers.ID, targets []controllers.ID) (map[controllers.ID][]controllers.ID, []string) {
	owners := map[controllers.ID][]controllers.ID{}
	appliers, unknown := s.appliersOf(ctx, []controllers.Kind{kindOf(owner)}, namespacesOf(append([]controllers.ID{owner}, targets...)...), targets...)
	for _, a := range appliers {
		other := a.kind.IDOf(a.object)
		if remote(a.object) || other == owner {
			continue
		}
		for _, t := range a.has {
			owners[t] = append(owners[t], other)
		}
	}
	return owners, unknown
}

// claims checks whether the appliers that owner labels name still apply an
// object. It reads a limited number of appliers, each once.
type claims struct {
	*verifier
	read     map[controllers.ID]controllers.Object
	rendered map[controllers.ID]*desired
	// unknown describes what could not be read, and why.
	unknown []string
}

func (s *verifier) newClaims() *claims {
	return &claims{verifier: s, read: map[controllers.ID]controllers.Object{}, rendered: map[controllers.ID]*desired{}}
}

// has reports whether an applier has applied an object.
func (c *claims) has(ctx context.Context, owner, t controllers.ID) bool {
	o := c.applier(ctx, owner)
	if o == nil || remote(o) {
		return false
	}
	k := kindOf(owner)
	managed := controllers.Managed(o)
	if len(managed) == 0 && k.Release {
		return c.released(ctx, owner, o, t) // an older helm-controller keeps no inventory
	}
	return slices.ContainsFunc(managed, func(m controllers.ID) bool { return m == t })
}

// applier returns an applier, or nil if it does not exist.
func (c *claims) applier(ctx context.Context, t controllers.ID) controllers.Object {
	if o := c.objects[t]; o != nil {
		return o
	}
	o, asked := c.read[t]
	if asked {
		return o
	}
	if len(c.read) >= inventoryLookups {
		c.miss(fmt.Sprintf("more than %d resources in owner labels of the inventory", inventoryLookups))
		return nil
	}
	o, err := c.readOwner(ctx, t)
	if err != nil {
		c.miss(unseen(err) + ": " + t.String() + ", an owner in labels of the inventory")
	}
	c.read[t] = o
	return o
}

// released reports whether the manifest of a release contains an object.
func (c *claims) released(ctx context.Context, owner controllers.ID, o controllers.Object, t controllers.ID) bool {
	rendered, asked := c.rendered[owner]
	if !asked {
		var err error
		if rendered, err = c.contents.released(ctx, newSubject(kindOf(owner), o)); err != nil {
			c.miss(unseen(err) + ": the release of " + owner.String() + ", an owner in labels of the inventory")
		}
		c.rendered[owner] = rendered
	}
	if rendered == nil {
		return false
	}
	_, has := rendered.of(t)
	return has
}

// miss records what could not be read.
func (c *claims) miss(what string) {
	if !slices.Contains(c.unknown, what) {
		c.unknown = append(c.unknown, what)
	}
}

// readOwner reads a Flux object. It returns nil if the object does not exist or
// its kind is unknown or not installed.
func (d Doctor) readOwner(ctx context.Context, t controllers.ID) (controllers.Object, error) {
	if kindOf(t).Kind == "" {
		return nil, nil
	}
	o, err := d.Client.GetKind(ctx, kindOf(t), t.Namespace, t.Name)
	var kindMissing *kube.MissingKindError
	if apierrors.IsNotFound(err) || errors.As(err, &kindMissing) {
		return nil, nil
	}
	return o, err
}
