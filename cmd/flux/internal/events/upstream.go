package events

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// link is an object in an upstream chain. If it is complete, all of its upstream objects are known,
// so it does not need to be read.
type link struct {
	objref.Target
	whole bool
}

// upstreamOf returns the direct upstream objects of an object: its sources, the ImageRepository of
// a policy, the Provider of an Alert. Dependencies are excluded, because they have separate
// upstream chains.
func upstreamOf(k controllers.Kind, o controllers.Object) []link {
	var links []link
	add := func(whole bool, targets []controllers.ID) {
		for _, t := range targets {
			if row, ok := t.Flux(); ok && t.Name != "" {
				links = append(links, link{objref.Target{Kind: row, Namespace: t.Namespace, Name: t.Name}, whole})
			}
		}
	}
	upstream, sources := k.Upstream(o), k.SourceOf(o)
	// The source in the chart template is upstream of the HelmChart of a release.
	_, described := controllers.Path{"spec.chart.spec"}.Lookup(o)
	add(described, upstream)
	add(false, sources)
	for _, r := range k.Refs {
		if r.Relation == "provider" {
			add(false, r.Targets(o))
		}
	}
	return links
}

// hasUpstream reports whether objects of the kind may have upstream objects.
func hasUpstream(k controllers.Kind) bool {
	for _, r := range k.Refs {
		if r.Relation == "provider" {
			return true
		}
	}
	return k.HasUpstream()
}

// walker walks upstream from an object, level by level. It reads the next
// level while the current level is visited.
type walker struct {
	app    *app.App
	client *kube.Client
	seen   map[string]bool
	// found reports whether the subject exists, subjects are the objects that it
	// refers to.
	found    bool
	subjects []controllers.Object
}

// walk calls visit with the objects of each level, beginning with the subject.
// A subject without a namespace refers to all objects with its name.
func (c *walker) walk(ctx context.Context, subject objref.Target, visit func(context.Context, []objref.Target) error) error {
	c.seen = map[string]bool{subject.Key(): true}
	level := []link{{Target: subject}}
	for len(level) > 0 {
		var visiting sync.WaitGroup
		var failed error
		visiting.Go(func() { failed = visit(ctx, targetsOf(level)) })
		next, err := c.read(ctx, subject, level)
		visiting.Wait()
		if failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
		level = c.unseen(next)
	}
	return nil
}

func targetsOf(level []link) []objref.Target {
	targets := make([]objref.Target, len(level))
	for i, l := range level {
		targets[i] = l.Target
	}
	return targets
}

func (c *walker) unseen(links []link) []link {
	var fresh []link
	for _, l := range links {
		if !c.seen[l.Key()] {
			c.seen[l.Key()] = true
			fresh = append(fresh, l)
		}
	}
	return fresh
}

// read returns the upstream objects of a level. It always reads the subject,
// to check whether it exists.
func (c *walker) read(ctx context.Context, subject objref.Target, level []link) ([]link, error) {
	found := make([][]link, len(level))
	failures := make([]error, len(level))
	var wg sync.WaitGroup
	for i, l := range level {
		atFoot := l.Key() == subject.Key()
		if !atFoot && (l.whole || !hasUpstream(l.Kind)) {
			continue
		}
		wg.Go(func() {
			objects, err := c.objects(ctx, l.Target)
			for _, o := range objects {
				found[i] = append(found[i], upstreamOf(l.Kind, o)...)
			}
			if atFoot {
				c.found, c.subjects = len(objects) > 0, objects
			}
			failures[i] = err
		})
	}
	wg.Wait()
	var next []link
	for i, err := range failures {
		switch {
		case err == nil, kube.NotServed(err) && level[i].Key() != subject.Key():
		case apierrors.IsForbidden(err):
			c.app.UI.Warning("no permission to read %s: its upstream objects are not included", level[i])
			c.found = c.found || level[i].Key() == subject.Key()
		default:
			return nil, err
		}
		next = append(next, found[i]...)
	}
	return next, nil
}

// objects returns the objects that a target refers to: at most one if it has a namespace, else one
// per namespace.
func (c *walker) objects(ctx context.Context, t objref.Target) ([]controllers.Object, error) {
	var objects []controllers.Object
	err := c.client.WithServedVersion(ctx, t.Kind, func(r kube.Resource) error {
		objects = nil
		if t.Namespace != "" {
			o, err := c.client.Get(ctx, r, t.Namespace, t.Name)
			if err == nil {
				objects = []controllers.Object{o}
			}
			return err
		}
		_, err := c.client.List(ctx, r, kube.Selection{Name: t.Name}, func(o controllers.Object) error {
			objects = append(objects, o)
			return nil
		})
		return err
	})
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil, nil
	}
	return objects, err
}
