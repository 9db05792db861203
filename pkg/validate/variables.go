package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/operator"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
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
		if _, known := c.unset[u]; !known {
			c.unset[u] = fieldWith(o.Object, "${"+name+"}", "")
			c.order = append(c.order, u)
		}
	}
}

// fieldWith returns the path of the first field below a value that contains a text, or "".
func fieldWith(value any, text, at string) string {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if field := fieldWith(value[key], text, strings.TrimPrefix(at+"."+key, ".")); field != "" {
				return field
			}
		}
	case []any:
		for i, below := range value {
			if field := fieldWith(below, text, fmt.Sprintf("%s[%d]", at, i)); field != "" {
				return field
			}
		}
	case string:
		if strings.Contains(value, text) {
			return at
		}
	}
	return ""
}

// strict reports whether kustomize-controller of the cluster fails if a variable has neither a value nor a default. A version
// that the repository does not determine counts as lenient.
func (c *cluster) strict() bool {
	var deployment *unstructured.Unstructured
	if o := c.byRef[controllers.ID{Group: "apps", Kind: "Deployment", Namespace: c.Namespace, Name: "kustomize-controller"}]; o != nil {
		deployment = o.Unstructured
	}
	version := ""
	if !c.Assumed {
		version = c.FluxVersion
	}
	strict, _ := controllers.StrictSubstitution(deployment, repository.Instance(c.graph), version)
	return strict
}

// variables reports variables without a value, unless they may come from a ConfigMap or Secret that
// is not in Git.
func (c *cluster) variables() {
	severity, message := Warning, "the variable ${%s} has neither a value nor a default"
	if len(c.order) > 0 && c.strict() {
		severity, message = Invalid, message+", which kustomize-controller rejects since version 1.9"
	}
	for _, u := range c.order {
		o := c.byRef[u.object]
		if o == nil || len(c.graph.Lacking(controllers.IDOf(o.side.Owner.Object))) > 0 {
			continue
		}
		c.add(o, Finding{
			Severity: severity, Rule: RuleVariable, Field: c.unset[u], Message: fmt.Sprintf(message, u.name),
			Fix: fmt.Sprintf("define it in spec.postBuild of %s, or escape it as $${%s}", controllers.IDOf(o.side.Owner.Object), u.name),
		})
	}
}

// lacking reports the Kustomizations and HelmReleases that were rendered without unknown variables
// or values, so that the objects on the cluster differ.
func (c *cluster) lacking() {
	for _, side := range c.deployed.Renderings {
		lacking := c.graph.Lacking(controllers.IDOf(side.Owner.Object))
		if len(lacking) == 0 {
			continue
		}
		owner, found := controllers.VersionedIDOf(side.Owner.Object), false
		missing := names(lacking, owner.Namespace)
		f := Finding{Severity: Unknown, Rule: RuleNotRendered, Object: owner, Owner: owner, Message: "rendered without its values in " + missing}
		affected := func(*object) bool { return true }
		switch {
		case build.IsKustomization(side.Owner):
			affected = func(o *object) bool { return substituted(o.Object.Object) }
			f.Rule, f.Message = RuleVariable, "rendered without its variables in "+missing
			f.Fix = "set the variables with --vars-file"
		case operator.Renders(side.Owner):
			affected = func(o *object) bool { return o.Partial }
			f.Message = "rendered without the data that objects copy from " + missing
		}
		for _, o := range c.objects {
			if o.side == side && affected(o) {
				o.unknown, found = true, true
			}
		}
		if found {
			c.findings = append(c.findings, f)
		}
	}
}

// names joins the names of ConfigMaps and Secrets.
func names(lacking []repository.Lack, namespace string) string {
	var all []string
	for _, l := range lacking {
		all = append(all, within(namespace, l.Object).String())
	}
	return strings.Join(all, " and ")
}

// within returns an ID without the given namespace: findings with the same text are merged.
func within(namespace string, id controllers.ID) controllers.ID {
	if id.Namespace == namespace {
		return id.WithoutNamespace()
	}
	return id
}
