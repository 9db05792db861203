package validate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// contents holds the objects of a cluster according to the repository, and the objects that controllers may add.
type contents struct {
	ids map[controllers.ID]bool
	// copied holds the names of objects that a controller may copy to other namespaces.
	copied map[controllers.ID]bool
	// incomplete is set if a Kustomization was not rendered. omitted holds the namespaces of HelmReleases that were not
	// rendered.
	incomplete bool
	omitted    map[string]bool
	// custom holds the names of custom resources by namespace, and texts the strings in them.
	custom map[string][]string
	texts  map[string]map[string]bool
	// pods holds the labels of pods by namespace.
	pods map[string][]labels.Set
}

func contentsOf(c *cluster) *contents {
	all := &contents{
		ids: map[controllers.ID]bool{}, copied: map[controllers.ID]bool{}, incomplete: c.Charts.Renderer == nil, omitted: map[string]bool{},
		custom: map[string][]string{}, texts: map[string]map[string]bool{}, pods: map[string][]labels.Set{},
	}
	for _, o := range c.deployed.Omitted {
		if release := c.byRef[o.Owner.ID]; release != nil && build.IsHelmRelease(release.Object.Unstructured) {
			all.omitted[installsTo(release.Object.Unstructured)] = true
			continue
		}
		all.incomplete = true
	}
	for id := range c.graph.Unfollowed() {
		all.incomplete = all.incomplete || id.IsResourceSet()
	}
	for _, o := range c.objects {
		if !controllers.IsRemote(o.side.Owner.Object) {
			all.add(o)
		}
	}
	return all
}

// installsTo returns the namespace of a HelmRelease's objects.
func installsTo(release *unstructured.Unstructured) string {
	if namespace := text(release, "spec", "targetNamespace"); namespace != "" {
		return namespace
	}
	return release.GetNamespace()
}

// consumers lists the kinds of custom resources that do not create objects that others refer to, by group. "" means all
// kinds.
var consumers = map[string][]string{
	"traefik.io": {""}, "cilium.io": {"CiliumNetworkPolicy"}, "monitoring.coreos.com": {"ServiceMonitor", "PodMonitor", "PrometheusRule", "Probe"},
}

func (all *contents) add(o *object) {
	id := o.ref.ID
	all.ids[id] = true
	for key := range o.GetAnnotations() {
		if strings.Contains(key, "reflect") || strings.Contains(key, "replicat") || strings.Contains(key, "sync") {
			all.copied[id.WithoutNamespace()] = true
		}
	}
	if at := podSpec(id.Group, id.Kind); at != "" {
		template := strings.Split(at, ".")
		set, _, _ := unstructured.NestedStringMap(o.Object.Object, append(template[:len(template)-1], "metadata", "labels")...)
		all.pods[id.Namespace] = append(all.pods[id.Namespace], set)
	}
	if build.IsHelmRelease(o.Object.Unstructured) {
		create, _, _ := unstructured.NestedBool(o.Object.Object, "spec", "install", "createNamespace")
		if namespace := installsTo(o.Object.Unstructured); create {
			all.ids[controllers.ID{Kind: "Namespace", Name: namespace}] = true
		}
	}
	_, flux := id.Flux()
	if kinds := consumers[id.Group]; flux || controllers.IsBuiltInGroup(id.Group) || slices.Contains(kinds, "") || slices.Contains(kinds, id.Kind) {
		return
	}
	all.custom[id.Namespace] = append(all.custom[id.Namespace], id.Name)
	if all.texts[id.Namespace] == nil {
		all.texts[id.Namespace] = map[string]bool{}
	}
	eachText(o.Object.Object["spec"], func(text string) { all.texts[id.Namespace][text] = true })
}

// eachText calls visit for each text below a value.
func eachText(value any, visit func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, below := range value {
			eachText(below, visit)
		}
	case []any:
		for _, below := range value {
			eachText(below, visit)
		}
	case string:
		visit(value)
	}
}

// unknown reports whether a namespace, "" for the cluster scope, may contain objects that were not rendered.
func (all *contents) unknown(namespace string) bool {
	return all.incomplete || all.omitted[namespace] || namespace == "" && len(all.omitted) > 0
}

// mayHave reports whether the cluster contains an object, or a controller may create it: from a custom resource that contains
// the name, or whose name is a prefix of the name.
func (all *contents) mayHave(id controllers.ID) bool {
	unknown := all.unknown(id.Namespace)
	if id.IsNamespace() {
		unknown = all.incomplete // charts rarely create namespaces
	}
	if all.ids[id] || all.copied[id.WithoutNamespace()] || unknown {
		return true
	}
	for _, namespace := range []string{id.Namespace, ""} {
		if all.texts[namespace][id.Name] || slices.ContainsFunc(all.custom[namespace], func(name string) bool {
			return name == id.Name || strings.HasPrefix(id.Name, name+"-")
		}) {
			return true
		}
	}
	return provided(id)
}

// provided reports whether Kubernetes or its installer creates an object.
func provided(id controllers.ID) bool {
	switch {
	case id.IsNamespace():
		return slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, id.Name)
	case id.IsConfigMap():
		return id.Name == "kube-root-ca.crt" || id.Namespace == "kube-system"
	case id.Kind == "ClusterRole":
		return strings.HasPrefix(id.Name, "system:") || slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, id.Name)
	case id.Kind == "Role":
		return strings.Contains(id.Name, ":")
	}
	return id.Kind == "ServiceAccount" && id.Name == "default"
}
