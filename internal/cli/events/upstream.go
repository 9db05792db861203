package events

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// link is an object of a chain. One that is whole was reached together with
// all that is above it, so that nobody has to read it to go on.
type link struct {
	objref.Target
	whole bool
}

// above are the objects that one object takes its content from or needs to do
// its work: its sources, the image repository of a policy, the provider of an
// alert. Dependencies are of its own kind and have chains of their own.
func above(k controllers.Kind, o controllers.Object) []link {
	var links []link
	add := func(whole bool, targets []controllers.Target) {
		for _, t := range targets {
			if row, ok := controllers.FindKind(t.Kind); ok && t.Name != "" {
				links = append(links, link{objref.Target{Kind: row, Namespace: t.Namespace, Name: t.Name}, whole})
			}
		}
	}
	upstream, sources := k.Upstream(o), k.SourceOf(o)
	// The chart that a release describes has the release's own source above it.
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

// hasAbove tells whether it is worth reading an object of the kind to go on.
func hasAbove(k controllers.Kind) bool {
	for _, r := range k.Refs {
		if r.Relation == "provider" {
			return true
		}
	}
	return k.HasUpstream()
}

// walker walks up the chain of an object, a level at a time: what is done
// with a level and what is above it are asked for at once.
type walker struct {
	app    *app.App
	client *kube.Client
	seen   map[string]bool
	// found says that the object at the foot is there, and feet are the objects
	// that it stands for.
	found bool
	feet  []controllers.Object
}

// walk calls visit with the objects of each level, the foot alone first. A
// foot without a namespace stands for all objects of its name.
func (c *walker) walk(ctx context.Context, foot objref.Target, visit func(context.Context, []objref.Target) error) error {
	c.seen = map[string]bool{foot.Key(): true}
	level := []link{{Target: foot}}
	for len(level) > 0 {
		var visiting sync.WaitGroup
		var failed error
		visiting.Go(func() { failed = visit(ctx, targetsOf(level)) })
		next, err := c.read(ctx, foot, level)
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

// read returns what is above the objects of a level. The foot is read in any
// case, to know whether it is there.
func (c *walker) read(ctx context.Context, foot objref.Target, level []link) ([]link, error) {
	found := make([][]link, len(level))
	failures := make([]error, len(level))
	var wg sync.WaitGroup
	for i, l := range level {
		atFoot := l.Key() == foot.Key()
		if !atFoot && (l.whole || !hasAbove(l.Kind)) {
			continue
		}
		wg.Go(func() {
			objects, err := c.objects(ctx, l.Target)
			for _, o := range objects {
				found[i] = append(found[i], above(l.Kind, o)...)
			}
			if atFoot {
				c.found, c.feet = len(objects) > 0, objects
			}
			failures[i] = err
		})
	}
	wg.Wait()
	var next []link
	for i, err := range failures {
		switch {
		case err == nil, kube.NotServed(err) && level[i].Key() != foot.Key():
		case apierrors.IsForbidden(err):
			c.app.UI.Warning("you may not read %s: what is above it is left out", level[i])
			c.found = c.found || level[i].Key() == foot.Key()
		default:
			return nil, err
		}
		next = append(next, found[i]...)
	}
	return next, nil
}

// objects are the ones that a target stands for: one, none, or one a namespace.
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
