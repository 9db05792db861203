package validate

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// checkWorkloads notes references of Kubernetes objects to objects that are not in Git: namespaces, ConfigMaps, Secrets
// and ServiceAccounts of pods, roles, Services of Ingresses, and the pods of selectors and autoscalers. These objects may
// exist on the cluster.
func checkWorkloads(c *cluster) {
	all := contentsOf(c)
	for _, o := range c.objects {
		owner := o.side.Owner
		if controllers.IsRemote(owner.Object) || len(c.graph.Lacking(controllers.IDOf(owner.Object))) > 0 {
			continue
		}
		id := o.ref.ID
		checkNamespace(c, o, id.Namespace, all)
		checkNeeded(c, o, all)
		for _, r := range referencesOf(id, o.Object.Object) {
			// Charts create objects when they are installed. Objects that the values refer to must exist.
			if !all.mayHave(r.id) && (build.IsKustomization(owner) || mentions(owner.Object["spec"], r.id.Name)) {
				c.notInGit(o, r.id, r.field)
			}
		}
		if f, ok := unselective(o, all); ok && build.IsKustomization(owner) {
			c.add(o, f)
		}
	}
}

// checkNeeded notes the objects in spec.dependsOn of a ResourceSet that are not in Git. Missing Flux objects are errors.
func checkNeeded(c *cluster, o *object, all *contents) {
	if !o.ref.IsResourceSet() {
		return
	}
	for _, needed := range (controllers.Part{Object: o.Object.Object}).Elements(dependsOn) {
		gvk := schema.FromAPIVersionAndKind(needed.Text("apiVersion"), needed.Text("kind"))
		id := controllers.NewID(gvk.GroupKind(), needed.Text("namespace"), needed.Text("name"))
		_, flux := id.Flux()
		namespaced, _ := build.Scope(gvk)
		installed := id.IsNamespace() && id.Name == c.Namespace || id.IsCRD() && slices.ContainsFunc(controllers.Known, func(k controllers.Kind) bool { return k.CRD() == id.Name })
		switch {
		case flux || substituted(id.Name):
		case namespaced && id.Namespace == "":
			c.add(o, Finding{Severity: Invalid, Rule: RuleDependency, Field: needed.Field, Message: fmt.Sprintf("names %s without a namespace", id)})
		case !installed && !all.mayHave(id) && !all.ids[id.WithoutNamespace()]: // the namespace of a cluster-scoped object has no effect
			c.add(o, Finding{Severity: Note, Rule: RuleDependency, Field: needed.Field, Message: fmt.Sprintf("names %s, which is not in Git", id)})
		}
	}
}

func mentions(value any, name string) bool {
	found := false
	eachText(value, func(text string) { found = found || text == name })
	return found
}

// checkNamespace notes the namespace of an object once if nothing creates it.
func checkNamespace(c *cluster, o *object, name string, all *contents) {
	id := controllers.ID{Kind: "Namespace", Name: name}
	namespaced, builtIn := build.Scope(o.GroupVersionKind())
	if name == "" || builtIn && !namespaced || name == c.Namespace || name == c.graph.Root().GetNamespace() || substituted(name) || all.mayHave(id) || c.missing[id] {
		return
	}
	c.missing[id] = true
	f := Finding{Severity: Note, Rule: RuleNamespace, Field: "metadata.namespace", Message: "nothing in Git creates the namespace " + name}
	owner := c.byRef[controllers.IDOf(o.side.Owner.Object)]
	if owner != nil && text(owner.Object.Unstructured, "spec", "targetNamespace") == name {
		o, f.Field = owner, "spec.targetNamespace"
		if build.IsHelmRelease(owner.Object.Unstructured) {
			f.Fix = "set spec.install.createNamespace, or add the namespace to Git"
		}
	}
	c.add(o, f)
}

// unselective returns a note about a Service or PodDisruptionBudget that selects no pods.
func unselective(o *object, all *contents) (Finding, bool) {
	id := o.ref.ID
	field := "spec.selector"
	switch {
	case id.Group == "" && id.Kind == "Service":
	case id.Group == "policy" && id.Kind == "PodDisruptionBudget":
		field = "spec.selector.matchLabels"
		if _, set := (controllers.Path{"spec.selector.matchExpressions"}).Lookup(o.Object.Object); set {
			return Finding{}, false
		}
	default:
		return Finding{}, false
	}
	selector, _, err := unstructured.NestedStringMap(o.Object.Object, strings.Split(field, ".")...)
	if err != nil || len(selector) == 0 || substituted(o.Object.Object["spec"]) || all.unknown(id.Namespace) || len(all.custom[id.Namespace]) > 0 {
		return Finding{}, false
	}
	matches := labels.SelectorFromSet(selector)
	if slices.ContainsFunc(all.pods[id.Namespace], func(pod labels.Set) bool { return matches.Matches(pod) }) {
		return Finding{}, false
	}
	text := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: selector})
	return Finding{Severity: Note, Rule: RuleReference, Field: field, Message: fmt.Sprintf("selects no pods in Git: %s", text)}, true
}
