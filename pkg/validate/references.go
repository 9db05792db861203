package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// references reports referenced Flux objects that are not deployed, and referenced Secrets and
// ConfigMaps that are not in Git.
func (c *cluster) references(ctx context.Context) {
	for _, o := range c.objects {
		kind, ok := o.ref.Flux()
		if !ok || controllers.IsRemote(o.side.Owner.Object) {
			continue // the references are to objects of another cluster
		}
		c.checkReferences(ctx, o, kind)
		c.checkSecrets(o)
	}
	for _, b := range c.deployed.Blocked {
		if o := c.byRef[b.Object.ID]; o != nil && !controllers.IsRemote(o.side.Owner.Object) {
			c.add(o, Finding{Severity: Invalid, Rule: RuleDependency, Field: dependsOn, Message: strings.TrimPrefix(strings.Replace(b.Reason, "circular "+dependsOn, "circular", 1), dependsOn+" ")})
		}
	}
}

// dependsOn is the field with the dependencies of an object.
const dependsOn = "spec.dependsOn"

// checkReferences reports missing sources, charts, providers, images and watched objects.
func (c *cluster) checkReferences(ctx context.Context, o *object, kind controllers.Kind) {
	var refs []controllers.Ref
	if kind.Source != nil {
		refs = append(refs, *kind.Source)
	}
	for _, r := range append(refs, kind.Refs...) {
		if r.Relation == "dependency" {
			continue // Blocked contains missing and circular dependencies
		}
		for _, target := range r.Targets(o.Object.Object) {
			if c.deploys(target) {
				continue
			}
			f := Finding{Severity: Invalid, Rule: RuleReference, Field: fieldOf(r, o), Message: fmt.Sprintf("refers to %s, which is not deployed", target)}
			switch {
			case target.Kind == controllers.ExternalArtifact:
				f.Severity, f.Message = Note, fmt.Sprintf("refers to %s, which no ArtifactGenerator in Git produces", target)
			case substituted(target.Name) || substituted(target.Namespace):
				f.Severity, f.Message = Unknown, fmt.Sprintf("refers to %s, which contains unknown variables", target)
			case !c.deployed.Complete && isDefined(ctx, c, target):
				f.Severity, f.Message = Unknown, fmt.Sprintf("refers to %s, which is in the repository, but not deployed", target)
			case !isComplete(c):
				f.Severity, f.Message = Unknown, f.Message+", unless an owner that was not rendered applies it"
			}
			c.add(o, f)
		}
	}
}

// isComplete reports whether an object that was not found is not deployed: all Kustomizations and HelmReleases were rendered,
// except those whose source was not found either.
func isComplete(c *cluster) bool {
	if c.deployed.Complete || c.Charts.Renderer == nil || len(c.graph.Unfollowed()) > 0 {
		return c.deployed.Complete
	}
	return !slices.ContainsFunc(c.deployed.Omitted, func(omitted repository.Omitted) bool {
		o, kind := c.byRef[omitted.Owner.ID], controllers.Kind{}
		if o != nil {
			kind, _ = o.ref.Flux()
		}
		return !omitted.Unavailable || o == nil || !slices.ContainsFunc(kind.SourceOf(o.Object.Object), func(source controllers.ID) bool {
			return !substituted(source.Name) && !substituted(source.Namespace) && !c.deploys(source)
		})
	})
}

// isDefined reports whether a file of the repository contains an object of that kind and name, for example for another
// cluster.
func isDefined(ctx context.Context, c *cluster, id controllers.ID) bool {
	found, err := sourcetree.Search(ctx, c.graph.Tree, []string{id.Kind, id.Name}, func(o *unstructured.Unstructured) bool {
		return controllers.IDOf(o.Object).WithoutNamespace() == id.WithoutNamespace()
	})
	return err != nil || len(found) > 0
}

// fieldOf returns the field of a reference.
func fieldOf(r controllers.Ref, o *object) string {
	for _, field := range r.Path {
		if _, ok := (controllers.Path{field}).Lookup(o.Object.Object); ok {
			return strings.TrimSuffix(field, "[]")
		}
	}
	return strings.TrimSuffix(r.Path[0], "[]")
}

// deploys reports whether an object is deployed, or is not a Flux object.
func (c *cluster) deploys(t controllers.ID) bool {
	if _, ok := t.Flux(); !ok || t.Name == "" || t.Name == "*" {
		return true
	}
	if c.byRef[t] != nil {
		return true
	}
	if build.SourceOf(c.graph.Root()) == t || controllers.IDOf(c.graph.Root().Object) == t {
		return true // bootstrap or an operator creates them
	}
	return c.generated(t)
}

// generated reports whether an object is created for another object: a HelmChart for a HelmRelease,
// or an ExternalArtifact for an ArtifactGenerator.
func (c *cluster) generated(ref controllers.ID) bool {
	return slices.ContainsFunc(c.objects, func(o *object) bool {
		kind, ok := o.ref.Flux()
		if !ok {
			return false
		}
		if kind.Release && slices.ContainsFunc(kind.Upstream(o.Object.Object), func(t controllers.ID) bool {
			return t == ref && createsChart(o)
		}) {
			return true
		}
		artifacts, _, _ := unstructured.NestedSlice(o.Object.Object, "spec", "artifacts")
		return o.ref.Namespace == ref.Namespace && slices.ContainsFunc(artifacts, func(a any) bool {
			m, _ := a.(map[string]any)
			return m["name"] == ref.Name
		})
	})
}

// createsChart reports whether a release has a chart template instead of a chart reference.
func createsChart(o *object) bool {
	_, ok := controllers.Path{"spec.chart.spec"}.Lookup(o.Object.Object)
	return ok
}

// checkSecrets notes the Secrets that are not in Git. They may be created on the cluster.
func (c *cluster) checkSecrets(o *object) {
	for _, s := range controllers.SecretsOf(o.Object.Object) {
		ref := controllers.ID{Kind: controllers.Secret, Namespace: o.ref.Namespace, Name: s.Name}
		if !s.Optional && !substituted(s.Name) {
			c.notInGit(o, ref, s.Field)
		}
	}
	for _, lack := range c.graph.Lacking(controllers.IDOf(o.Unstructured.Object)) {
		c.notInGit(o, lack.Object, "")
	}
}

// notInGit notes a ConfigMap or Secret once.
func (c *cluster) notInGit(o *object, ref controllers.ID, field string) {
	if c.missing[ref] || c.byRef[ref] != nil {
		return
	}
	c.missing[ref] = true
	c.add(o, Finding{Severity: Note, Rule: RuleReference, Field: field, Message: fmt.Sprintf("refers to %s, which is not in Git", within(o.Unstructured.GetNamespace(), ref))})
}
