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
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// inventoryLists is the maximum number of list requests for an inventory,
	// one for each kind. inventoryLookups is the maximum number of requests for
	// single objects.
	inventoryLists   = 12
	inventoryLookups = 5
	// listsAtOnce is the maximum number of parallel lists.
	listsAtOnce = 6
	// namedObjects is the maximum number of objects to name in a case.
	namedObjects = 5
)

// inventory is the live state of the objects in an inventory.
type inventory struct {
	subject
	// targets lists the entries with their API versions.
	targets []controllers.ID
	// live holds the metadata of existing objects, and absent the missing objects. An object in
	// neither map could not be checked.
	live   map[controllers.ID]controllers.Object
	absent map[controllers.ID]bool
	// unknown describes what could not be checked, and why.
	unknown []string
	// rendered is the desired state, or nil if it is unknown. suspects lists the objects that may
	// differ from it.
	rendered *desired
	suspects []suspect

	mu sync.Mutex
}

// take keeps the metadata of a live object, without the managed fields, which
// are large and only needed to find suspects.
func (inv *inventory) take(t controllers.ID, o controllers.Object) {
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
// each kind, selected by the owner labels, and a request for each remaining
// object.
func (s *verifier) readInventory(ctx context.Context, sub subject, rendered *desired) *inventory {
	inv := &inventory{
		subject: sub, rendered: rendered, targets: controllers.Managed(sub.object),
		live: map[controllers.ID]controllers.Object{}, absent: map[controllers.ID]bool{},
	}
	entries, err := controllers.ParseInventory(sub.object)
	if err != nil {
		inv.unknown = append(inv.unknown, fmt.Sprintf("a part of the inventory of %s: %v", sub.id(), err))
	}
	scopes := scopesOf(entries)
	if len(scopes) > inventoryLists {
		n := 0
		for _, scope := range scopes[inventoryLists:] {
			n += len(scope.targets)
		}
		inv.unknown = append(inv.unknown, fmt.Sprintf("%s of %d more kinds in the inventory of %s", output.Amount(n, "object"), len(scopes)-inventoryLists, sub.id()))
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
	_ = g.Wait() // all errors are in unknown
	inv.lookUp(ctx, s.Client, scopes)
	slices.Sort(inv.unknown)
	return inv
}

// inventoryScope holds the objects of one kind.
type inventoryScope struct {
	resource kube.Resource
	// namespace is "" for several namespaces and for cluster-scoped objects.
	namespace string
	targets   []controllers.ID
	// done is set if the kind is not served or cannot be listed.
	done bool
}

// scopesOf returns the kinds of an inventory, sorted by the number of objects.
func scopesOf(entries []controllers.VersionedID) []*inventoryScope {
	byKind := map[schema.GroupVersionKind]*inventoryScope{}
	var scopes []*inventoryScope
	for _, e := range entries {
		t, at := e.ID, e.GroupVersionKind()
		scope := byKind[at]
		if scope == nil {
			scope = &inventoryScope{resource: kube.ResourceFor(at), namespace: t.Namespace}
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

// ownerLabels returns the label selector for the objects of an applier.
func (s subject) ownerLabels() string {
	return fmt.Sprintf("%[1]s/name=%[2]s,%[1]s/namespace=%[3]s", s.kind.Group, s.name(), s.namespace())
}

// list reads the objects of a kind. If the guessed resource is not served, it
// looks up the resource once.
func (inv *inventory) list(ctx context.Context, client *kube.Client, scope *inventoryScope) {
	wanted := map[[2]string]controllers.ID{}
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
	case errors.As(err, &notServed): // the CRD was deleted with its objects
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
		inv.unknown = append(inv.unknown, unseen(err)+": "+scope.resource.Resource+" in the inventory of "+inv.id().String())
	}
}

// servedAs returns the resource with the plural and the version that the
// cluster serves.
func servedAs(ctx context.Context, client *kube.Client, r kube.Resource) (kube.Resource, error) {
	versions, err := client.Discovery().NamedInGroup(ctx, r.Group, strings.ToLower(r.Kind))
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

// withoutContent lists the fields that the diagnosis of an inventory does not need.
var withoutContent = []string{"spec", "status", "data", "binaryData", "stringData"}

// lookUp reads the objects that no list returned: they are missing, or have
// lost their labels.
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
		inv.unknown = append(inv.unknown, fmt.Sprintf("%s without the labels of %s", output.Amount(left, "object"), inv.id()))
	}
}

// metadataOf returns the metadata of one object, or nil if it does not exist.
func metadataOf(ctx context.Context, client *kube.Client, r kube.Resource, t controllers.ID) (found controllers.Object, err error) {
	_, err = client.List(ctx, r, kube.Selection{Namespace: t.Namespace, Name: t.Name, OnlyMetadata: true, Without: withoutContent}, func(o controllers.Object) error {
		found = o
		return nil
	})
	return found, err
}

// missing returns the case of the missing objects.
func (inv *inventory) missing(d Doctor, skip func(controllers.ID) bool) (Case, bool) {
	var gone []controllers.ID
	for _, t := range inv.targets {
		if inv.absent[t] && !skip(t) {
			gone = append(gone, t)
		}
	}
	if len(gone) == 0 {
		return Case{}, false
	}
	owner := inv.id()
	root := d.deleted(gone[0], inv.subject)
	for _, t := range gone[1:min(len(gone), namedObjects)] {
		root.Details = append(root.Details, t.String()+" is missing as well")
	}
	root.Details = append(root.Details, moreOf(len(gone)-namedObjects)...)
	first := Finding{Object: owner, Code: "incomplete", Message: fmt.Sprintf("%d of %s in its inventory missing", len(gone), output.Amount(len(inv.targets), "object"))}
	return Case{Object: owner, Root: root, Chain: []Finding{first, root}}, true
}

// deleted returns the finding for an object of an inventory that does not
// exist.
func (d Doctor) deleted(t controllers.ID, sub subject) Finding {
	f := Finding{Object: t, Code: "deleted", Message: fmt.Sprintf("it does not exist, although %s has applied it: it was deleted outside Flux", sub.id())}
	detail, remedies := d.correction(sub)
	f.Details, f.Remedies = []string{detail}, remedies
	return f
}

// blocked returns the cases of objects that are being deleted.
func (inv *inventory) blocked(i *installation) []Case {
	var cases []Case
	owner := inv.id()
	for _, t := range inv.targets {
		f, ok := i.blockedDeletion(t, inv.live[t])
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
