package audit

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
)

// Rule is a kind of finding.
type Rule struct {
	// ID identifies the rule on the command line, in annotations and in reports.
	ID string
	// Severity is the severity of findings, unless the rule sets another one for an object.
	Severity validate.Severity
	// Summary describes the problem in one sentence.
	Summary string
	// Reason explains the risk and the remedy.
	Reason string
	// Offline is set if the rule needs information that only a repository has.
	Offline bool

	find func(*state, *Object) []hit
}

// hit is one occurrence of the problem that a rule finds.
type hit struct {
	// severity replaces the severity of the rule.
	severity            validate.Severity
	field, message, fix string
	// value is the value of the field, if it may differ between the files that define the object.
	value string
}

// Object is an object with the owner that applies it.
type Object = validate.Object

// state holds the input of the rules.
type state struct {
	validate.Deployment
	byID map[controllers.ID]*Object
	// live is set for the objects of a cluster, which are Flux objects only.
	live bool
	// crds maps each kind to the owners that apply its CustomResourceDefinition.
	crds map[kind][]controllers.ID
	// appliers maps an object to the owners that apply it. tenants holds the namespaces with a tenant label.
	appliers map[controllers.ID][]controllers.ID
	tenants  map[string]bool
	// sources holds the sources of the Kustomizations. readers maps a ConfigMap or Secret to an object that refers to it, and
	// dependents a Kustomization to one that depends on it.
	sources             map[controllers.ID]bool
	readers, dependents map[controllers.ID]controllers.ID
	// misplaced maps a ConfigMap or Secret in the target namespace of a HelmRelease that reads it in its own namespace to the
	// HelmRelease.
	misplaced map[controllers.ID]controllers.ID
	// accounts maps a namespace to an object in it that is applied with a service account, and bindings are the admission policies
	// for the namespaces of tenants.
	accounts map[string]controllers.ID
	bindings []binding
	// shared counts the objects that two owners both apply.
	shared map[controllers.ID]map[controllers.ID]int
	// impersonates is set if the controllers have a default service account.
	impersonates bool
}

type kind struct{ group, kind string }

func newState(d validate.Deployment, live bool) *state {
	s := &state{
		Deployment: d, live: live, byID: map[controllers.ID]*Object{}, crds: map[kind][]controllers.ID{},
		appliers: map[controllers.ID][]controllers.ID{}, tenants: map[string]bool{}, sources: map[controllers.ID]bool{},
		readers: map[controllers.ID]controllers.ID{}, dependents: map[controllers.ID]controllers.ID{}, misplaced: map[controllers.ID]controllers.ID{},
		accounts: map[string]controllers.ID{}, shared: map[controllers.ID]map[controllers.ID]int{},
	}
	for i := range d.Objects {
		o := &d.Objects[i]
		s.byID[o.ID] = o
		owner := controllers.IDOf(o.Owner.Object)
		s.appliers[o.ID] = append(s.appliers[o.ID], owner)
		s.link(o)
		switch {
		case o.ID.IsCRD():
			k := kind{text(o, "spec.group"), text(o, "spec.names.kind")}
			s.crds[k] = append(s.crds[k], owner)
		case o.ID.IsNamespace():
			s.tenants[o.ID.Name] = o.GetLabels()["toolkit.fluxcd.io/tenant"] != "" || o.GetLabels()["toolkit.fluxcd.io/role"] == "tenant"
		case o.ID.Kind == "Deployment" && s.ofFlux(o):
			s.impersonates = s.impersonates || impersonates(o)
		case o.ID.Kind == "ValidatingAdmissionPolicyBinding":
			s.bindings = append(s.bindings, bindingOf(o)...)
		case o.ID.IsFluxInstance():
			s.impersonates = s.impersonates || text(o, "spec.cluster.multitenant") == "true"
		}
	}
	for _, owners := range s.appliers {
		s.share(owners[:min(len(owners), ownersMax)])
	}
	return s
}

// link records the references of an object.
func (s *state) link(o *Object) {
	for _, ks := range []*unstructured.Unstructured{o.Unstructured, o.Owner} {
		if build.IsKustomization(ks) {
			s.sources[build.SourceOf(ks)] = true
		}
	}
	for _, at := range settingsOf(o) {
		keepFirst(s.readers, at.id, o.ID)
		if target := text(o, "spec.targetNamespace"); target != "" && target != at.id.Namespace && build.IsHelmRelease(o.Unstructured) && text(o, at.field+".optional") != "true" {
			keepFirst(s.misplaced, controllers.ID{Kind: at.id.Kind, Namespace: target, Name: at.id.Name}, o.ID)
		}
	}
	if applies(o) && text(o, "spec.serviceAccountName") != "" {
		keepFirst(s.accounts, o.ID.Namespace, o.ID)
	}
	if k, _ := o.ID.Flux(); build.IsKustomization(o.Unstructured) {
		for _, id := range k.DependenciesOf(o.Unstructured.Object) {
			keepFirst(s.dependents, id, o.ID)
		}
	}
}

func keepFirst[K comparable](m map[K]controllers.ID, key K, value controllers.ID) {
	if _, known := m[key]; !known {
		m[key] = value
	}
}

// ownersMax is the maximum number of owners of an object to compare.
const ownersMax = 10

// share counts an object for each pair of its owners.
func (s *state) share(owners []controllers.ID) {
	for _, a := range owners {
		for _, b := range owners {
			if a == b {
				continue
			}
			if s.shared[a] == nil {
				s.shared[a] = map[controllers.ID]int{}
			}
			s.shared[a][b]++
		}
	}
}

// impersonates reports whether a controller has a default service account.
func impersonates(deployment *Object) bool {
	for _, pod := range controllers.PodSpecs(deployment.Unstructured.Object) {
		for _, container := range controllers.Containers(pod) {
			if slices.ContainsFunc(controllers.Path{"args[]"}.Strings(container.Object), func(arg string) bool {
				return strings.HasPrefix(strings.TrimLeft(arg, "-"), "default-service-account=")
			}) {
				return true
			}
		}
	}
	return false
}

// Rank returns the position of a severity: 0 is the most severe.
func Rank(s validate.Severity) int {
	return slices.Index([]validate.Severity{validate.Invalid, validate.Unknown, validate.Warning, validate.Note}, s)
}

// ofFlux reports whether an object is a part of Flux itself, whose controllers need permissions.
func (s *state) ofFlux(o *Object) bool {
	return o.GetLabels()["app.kubernetes.io/part-of"] == "flux" && (o.ID.Namespace == "" || o.ID.Namespace == s.Namespace)
}

// ofChart returns Note for an object of a chart, whose values may not allow a fix, and "" for other objects.
func ofChart(o *Object) validate.Severity {
	if build.IsHelmRelease(o.Owner) && o.Owner != o.Unstructured {
		return validate.Note
	}
	return ""
}

// when returns an occurrence if a condition is true.
func when(occurs bool, h hit) []hit {
	if !occurs {
		return nil
	}
	return []hit{h}
}

// text returns a field of an object, or "".
func text(o *Object, path string) string { return controllers.Path{path}.String(o.Unstructured.Object) }

// has reports whether an object has a field.
func has(o *Object, path string) bool {
	_, ok := controllers.Path{path}.Lookup(o.Unstructured.Object)
	return ok
}
