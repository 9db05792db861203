package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// inventoryLists bounds the lists that an inventory costs, one for each kind,
	// and inventoryLookups the requests for single objects that no list has.
	inventoryLists   = 12
	inventoryLookups = 5
	// listsAtOnce is how many of them are under way together.
	listsAtOnce = 6
	// namedObjects is how many objects of a case are named.
	namedObjects = 5
)

// inventory is what is live of the objects that an applier has applied.
type inventory struct {
	subject
	// targets are its entries, with the API version that they name.
	targets []controllers.Target
	// live has the metadata of those that exist, absent those that do not. What
	// is in neither could not be checked.
	live   map[controllers.Target]controllers.Object
	absent map[controllers.Target]bool
	// unknown says what could not be checked, and why.
	unknown []string
	// rendered is what was applied, nil where that could not be had, and suspects
	// are the objects that may differ from it.
	rendered *desired
	suspects []suspect

	mu sync.Mutex
}

// take keeps what is needed of a live object. Who manages its fields is most of
// its metadata, and only of interest where the object may have drifted.
func (inv *inventory) take(t controllers.Target, o controllers.Object) {
	found, suspicious := inv.rendered.suspect(inv.subject, t, o)
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.live[t] = o
	if suspicious {
		inv.suspects = append(inv.suspects, found)
	}
}

// readInventory reads the metadata of the objects in an inventory: one list for
// each kind, by the labels of the applier, and a request for each object that
// is in none.
func (s *snapshot) readInventory(ctx context.Context, sub subject, rendered *desired) *inventory {
	inv := &inventory{
		subject: sub, rendered: rendered, targets: sub.kind.Managed(sub.object),
		live: map[controllers.Target]controllers.Object{}, absent: map[controllers.Target]bool{},
	}
	scopes := inv.scopes()
	if len(scopes) > inventoryLists {
		n := 0
		for _, scope := range scopes[inventoryLists:] {
			n += len(scope.targets)
		}
		inv.unknown = append(inv.unknown, fmt.Sprintf("%s of %d more kinds in the inventory of %s", times(n, "object"), len(scopes)-inventoryLists, targetOf(sub.kind, sub.object)))
		scopes = scopes[:inventoryLists]
	}
	var g errgroup.Group
	g.SetLimit(listsAtOnce)
	for _, scope := range scopes {
		g.Go(func() error {
			inv.list(ctx, s.Client, scope)
			return nil
		})
	}
	_ = g.Wait() // each list keeps its own error
	inv.lookUp(ctx, s.Client, scopes)
	slices.Sort(inv.unknown)
	return inv
}

// scope are the objects of one kind.
type inventoryScope struct {
	resource kube.Resource
	// namespace is "" where they are in several or in none.
	namespace string
	targets   []controllers.Target
	// done says that nothing is left to ask: the kind is not served, or cannot be
	// listed.
	done bool
}

// scopes are the kinds of the inventory, those with the most objects first.
func (inv *inventory) scopes() []*inventoryScope {
	byKind := map[[2]string]*inventoryScope{}
	var scopes []*inventoryScope
	for _, t := range inv.targets {
		at := [2]string{t.APIVersion, t.Kind}
		scope := byKind[at]
		if scope == nil {
			scope = &inventoryScope{resource: kube.Guess(schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)), namespace: t.Namespace}
			scope.resource.ClusterScoped = t.Namespace == ""
			byKind[at] = scope
			scopes = append(scopes, scope)
		}
		if scope.namespace != t.Namespace {
			scope.namespace = ""
		}
		scope.targets = append(scope.targets, t)
	}
	slices.SortStableFunc(scopes, func(a, b *inventoryScope) int { return cmp.Compare(len(b.targets), len(a.targets)) })
	return scopes
}

// ownerLabels select what an applier has applied.
func (s subject) ownerLabels() string {
	return fmt.Sprintf("%[1]s/name=%[2]s,%[1]s/namespace=%[3]s", s.kind.Group, s.name(), s.namespace())
}

// list reads the objects of a kind. A resource whose plural is not regular is
// looked up once.
func (inv *inventory) list(ctx context.Context, client *kube.Client, scope *inventoryScope) {
	wanted := map[[2]string]controllers.Target{}
	for _, t := range scope.targets {
		wanted[[2]string{t.Namespace, t.Name}] = t
	}
	selection := kube.Selection{Namespace: scope.namespace, Labels: inv.ownerLabels(), OnlyMetadata: true, Without: withoutContent}
	keep := func(o controllers.Object) error {
		if t, ok := wanted[[2]string{controllers.Namespace(o), controllers.Name(o)}]; ok {
			inv.take(t, o)
		}
		return nil
	}
	_, err := client.List(ctx, scope.resource, selection, keep)
	if apierrors.IsNotFound(err) {
		if scope.resource, err = servedAs(ctx, client, scope.resource); err == nil {
			_, err = client.List(ctx, scope.resource, selection, keep)
		}
	}
	var notServed *kube.UnknownWordError
	switch {
	case err == nil:
	case errors.As(err, &notServed): // the objects went with their CRD
		inv.mu.Lock()
		defer inv.mu.Unlock()
		scope.done = true
		for _, t := range scope.targets {
			inv.absent[t] = true
		}
	default:
		inv.mu.Lock()
		defer inv.mu.Unlock()
		scope.done = true
		inv.unknown = append(inv.unknown, unseen(err)+": "+scope.resource.Resource+" in the inventory of "+targetOf(inv.kind, inv.object).String())
	}
}

// servedAs returns a resource as the cluster serves it: its plural is not regular,
// or its version is not served any more.
func servedAs(ctx context.Context, client *kube.Client, r kube.Resource) (kube.Resource, error) {
	versions, err := client.NamedInGroup(ctx, r.Group, strings.ToLower(r.Kind))
	if err != nil {
		return r, err
	}
	served := versions[0]
	for _, v := range versions {
		if v.Version == r.Version {
			served = v
		}
	}
	served.ClusterScoped = r.ClusterScoped
	return served, nil
}

// withoutContent are the fields that no diagnosis of an inventory needs.
var withoutContent = []string{"spec", "status", "data", "binaryData", "stringData"}

// lookUp asks for the objects that no list has: they are gone, or something
// else has taken their labels.
func (inv *inventory) lookUp(ctx context.Context, client *kube.Client, scopes []*inventoryScope) {
	asked, left := 0, 0
	for _, scope := range scopes {
		for _, t := range scope.targets {
			if inv.live[t] != nil || scope.done {
				continue
			}
			if asked++; asked > inventoryLookups {
				left++
				continue
			}
			o, err := metadataOf(ctx, client, scope.resource, t)
			switch {
			case err != nil:
				inv.unknown = append(inv.unknown, unseen(err)+": "+t.String())
			case o == nil:
				inv.absent[t] = true
			default:
				inv.take(t, o)
			}
		}
	}
	if left > 0 {
		inv.unknown = append(inv.unknown, fmt.Sprintf("%s without the labels of %s", times(left, "object"), targetOf(inv.kind, inv.object)))
	}
}

// metadataOf returns the metadata of one object, nil where it does not exist.
func metadataOf(ctx context.Context, client *kube.Client, r kube.Resource, t controllers.Target) (found controllers.Object, err error) {
	_, err = client.List(ctx, r, kube.Selection{Namespace: t.Namespace, Name: t.Name, OnlyMetadata: true, Without: withoutContent}, func(o controllers.Object) error {
		found = o
		return nil
	})
	return found, err
}

// missing is the case of the objects that something else has deleted.
func (inv *inventory) missing(s *snapshot, skip func(controllers.Target) bool) (Case, bool) {
	var gone []controllers.Target
	for _, t := range inv.targets {
		if inv.absent[t] && !skip(t) {
			gone = append(gone, t)
		}
	}
	if len(gone) == 0 {
		return Case{}, false
	}
	owner := targetOf(inv.kind, inv.object)
	root := s.deleted(gone[0], inv.subject)
	for _, t := range gone[1:min(len(gone), namedObjects)] {
		root.Details = append(root.Details, t.String()+" is missing, too")
	}
	if n := len(gone) - namedObjects; n > 0 {
		root.Details = append(root.Details, fmt.Sprintf("and %d more", n))
	}
	first := Finding{Object: owner, Code: "incomplete", Message: fmt.Sprintf("%d of %s in its inventory missing", len(gone), times(len(inv.targets), "object"))}
	return Case{Object: owner, Root: root, Chain: []Finding{first, root}}, true
}

// deleted returns the finding of an object that is in an inventory and does not exist.
func (s *snapshot) deleted(t controllers.Target, sub subject) Finding {
	f := Finding{Object: key(t), Code: "deleted", Message: fmt.Sprintf("it does not exist, although %s has applied it: it was deleted outside Flux", targetOf(sub.kind, sub.object))}
	detail, remedies := s.correction(sub)
	f.Details, f.Remedies = []string{detail}, remedies
	return f
}

// blocked are the cases of objects whose deletion does not finish.
func (inv *inventory) blocked(s *snapshot) []Case {
	var cases []Case
	owner := targetOf(inv.kind, inv.object)
	for _, t := range inv.targets {
		f, ok := s.blockedDeletion(t, inv.live[t])
		if !ok {
			continue
		}
		if len(cases) == namedObjects {
			cases[0].Root.Details = append(cases[0].Root.Details, "more objects of the inventory are being deleted")
			cases[0].settle()
			break
		}
		first := Finding{Object: owner, Code: "incomplete", Message: "an object in its inventory is being deleted"}
		cases = append(cases, Case{Object: owner, Root: f, Chain: []Finding{first, f}})
	}
	return cases
}
