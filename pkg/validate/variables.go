package validate

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// unset is a variable of an object that has neither a value nor a default.
type unset struct {
	object controllers.ID
	name   string
}

// recordUnset is called by builds, which may be repeated.
func (c *cluster) recordUnset(o *unstructured.Unstructured, names []string) {
	for _, name := range names {
		u := unset{controllers.IDOf(o.Object), name}
		if !c.unset[u] {
			c.unset[u] = true
			c.order = append(c.order, u)
		}
	}
}

// variables reports variables without a value, except those that may be in a ConfigMap or Secret that
// is not in Git.
func (c *cluster) variables() {
	for _, u := range c.order {
		o := c.byRef[u.object]
		if o == nil || len(c.graph.Lacking(controllers.IDOf(o.side.Owner.Object))) > 0 {
			continue
		}
		c.add(o, Finding{
			Severity: Warning, Rule: RuleVariable, Message: fmt.Sprintf("the variable ${%s} has neither a value nor a default", u.name),
			Fix: fmt.Sprintf("define it in spec.postBuild of %s, or escape it as $${%s}", controllers.IDOf(o.side.Owner.Object), u.name),
		})
	}
}

// lacking reports the Kustomizations and HelmReleases that were rendered without variables or values
// that are not known. What they deploy differs.
func (c *cluster) lacking() {
	for _, side := range c.deployed.Renderings {
		lacking := c.graph.Lacking(controllers.IDOf(side.Owner.Object))
		if len(lacking) == 0 {
			continue
		}
		owner, found := controllers.VersionedIDOf(side.Owner.Object), false
		f := Finding{Severity: Unknown, Rule: RuleNotRendered, Object: owner, Owner: owner, Message: "rendered without its values in " + names(lacking)}
		kustomization := build.IsKustomization(side.Owner)
		if kustomization {
			f.Rule, f.Message = RuleVariable, "rendered without its variables in "+names(lacking)
			f.Fix = "set the variables with --vars-file"
		}
		for _, o := range c.objects {
			if o.side == side && (!kustomization || substituted(o.Object.Object)) {
				o.unknown, found = true, true
			}
		}
		if found {
			c.findings = append(c.findings, f)
		}
	}
}

// locate finds the files of the objects with findings, as far as a file has an object of that name.
func (c *cluster) locate(ctx context.Context, tree fs.FS) error {
	wanted := map[controllers.ID][]string{}
	for _, f := range c.findings {
		wanted[nameOf(f.Object.ID)] = nil
	}
	if len(wanted) == 0 {
		return nil
	}
	found, err := sourcetree.Search(ctx, tree, nil, func(o *unstructured.Unstructured) bool {
		_, ok := wanted[nameOf(controllers.IDOf(o.Object))]
		return ok
	})
	if err != nil {
		return err
	}
	for _, m := range found {
		ref := nameOf(controllers.IDOf(m.Unstructured.Object))
		if !slices.Contains(wanted[ref], m.File) {
			wanted[ref] = append(wanted[ref], m.File)
		}
	}
	for i, f := range c.findings {
		if files := wanted[nameOf(f.Object.ID)]; len(files) == 1 && (f.Owner == f.Object || f.Owner.Kind == c.graph.Root().GetKind()) {
			c.findings[i].File = files[0]
		}
	}
	return nil
}

// nameOf returns the kind and the name of an object, whose namespace may not be in its file.
func nameOf(r controllers.ID) controllers.ID {
	return controllers.ID{Kind: r.Kind, Name: r.Name}
}
