package observe

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

// Survey reads all Flux objects in a namespace, or in all namespaces if it is "", and their dependencies in other namespaces.
// Kinds that may not be listed in all namespaces are listed in the fallback namespace, as is common for tenants.
func (c *Cluster) Survey(ctx context.Context, namespace, fallback string, tolerated func(error) bool) (*Snapshot, error) {
	s := NewSnapshot()
	objects, err := s.list(ctx, c.Client, namespace, fallback, tolerated)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		s.Objects[controllers.IDOf(o)] = o
	}
	if namespace == "" && len(s.narrowed) == 0 {
		return s, nil
	}
	var outside []controllers.ID
	for _, t := range s.IDs() {
		for _, up := range tree.Awaited(KindOf(t), s.object(t)) {
			if !s.covers(up) {
				outside = append(outside, up)
			}
		}
	}
	return s, c.NewReader(s, tolerated).Follow(ctx, outside)
}

func (s *Snapshot) list(ctx context.Context, client *kube.Client, namespace, fallback string, tolerated func(error) bool) ([]controllers.Object, error) {
	s.listed, s.namespace, s.within, s.narrowed = true, namespace, fallback, map[string]error{}
	objects, refused, err := client.ListAll(ctx, kube.Selection{Namespace: namespace, Without: unwanted}, tolerated, s.healthy.keep)
	s.refused = refused
	if err != nil || namespace != "" || fallback == "" || !slices.ContainsFunc(slices.Collect(maps.Values(refused)), apierrors.IsForbidden) {
		return objects, err
	}
	own, refusedThere, err := client.ListAll(ctx, kube.Selection{Namespace: fallback, Without: unwanted}, tolerated, reduced)
	if err != nil {
		return nil, err
	}
	for _, o := range own {
		if refused[controllers.IDOf(o).Kind] != nil {
			objects = append(objects, o)
		}
	}
	for kind, err := range refused {
		if refusedThere[kind] == nil {
			s.narrowed[kind] = err
			delete(s.refused, kind)
		}
	}
	return objects, nil
}

// ConnectSurvey builds the dependency graph of the objects of a survey that may have a problem, and of their dependencies. The
// others stay in their compact form. unavailable reports whether a controller is not working.
func (s *Snapshot) ConnectSurvey(unavailable func(controller string) bool) {
	var objects []controllers.Object
	taken := map[controllers.ID]bool{}
	var take func(t controllers.ID, o controllers.Object)
	take = func(t controllers.ID, o controllers.Object) {
		if o == nil || taken[t] {
			return
		}
		taken[t] = true
		s.Objects[t] = o
		objects = append(objects, o)
		for _, up := range tree.Awaited(KindOf(t), o) {
			take(up, s.object(up))
		}
	}
	for _, t := range s.IDs() {
		k := KindOf(t)
		if stored := s.Objects[t] == nil; stored && len(k.Attempts) == 0 && !unavailable(k.Controller) {
			continue // sources have no attempted revision
		}
		if o := s.object(t); unavailable(k.Controller) || !isHealthy(k, o) || s.mayLag(k, o) {
			take(t, o)
		}
	}
	s.connect(objects)
}

// mayLag reports whether a healthy object has not attempted the current revision of its source.
func (s *Snapshot) mayLag(k controllers.Kind, o controllers.Object) bool {
	if len(k.Attempts) == 0 {
		return len(k.AllRefs()) > 0
	}
	for _, up := range k.Upstream(o) {
		source := KindOf(up)
		if source.Family != "source" {
			continue
		}
		if revision, there := s.revision(up); there && !k.Tried(o, source, revision) {
			return true
		}
	}
	return false
}

// revision returns the revision of a source, and false if the source was not read. A source is decoded once, since many objects
// reference it.
func (s *Snapshot) revision(t controllers.ID) (string, bool) {
	r, known := s.revisions[t]
	if !known {
		o := s.object(t)
		if o == nil {
			return "", false
		}
		r = KindOf(t).Result.String(o)
		s.revisions[t] = r
	}
	return r, true
}
