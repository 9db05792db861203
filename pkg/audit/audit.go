// Package audit finds risks in what a repository deploys, and in the Flux objects of a cluster: secrets in plain text,
// connections without TLS, versions that are not fixed, and settings that cause failures or make them hard to repair.
//
// It does not look for changes, as the rules of package review do, and it reports what package validate finds as well: an
// object that is invalid fails sooner or later.
package audit

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/validate"
)

// AllowAnnotation lists the IDs of the rules that do not apply to an object, separated by commas.
const AllowAnnotation = "fluxkit.dev/allow-audit"

// Rule is a kind of finding.
type Rule struct {
	// ID identifies the rule on the command line, in annotations and in reports.
	ID string
	// Severity is how much a finding matters, unless the rule decides otherwise for an object.
	Severity validate.Severity
	// Summary says in a sentence what is wrong.
	Summary string
	// Reason says why it matters, and what to do about it.
	Reason string
	// Offline is set if the rule needs what the objects of a repository have and those of a cluster do not.
	Offline bool

	find func(*state, *Object) []hit
}

// hit is an occurrence of what a rule is about.
type hit struct {
	// severity replaces that of the rule.
	severity            validate.Severity
	field, message, fix string
	// value is the value of the field, if it may differ between the files that define the object.
	value string
}

// Object is an object with what applies it.
type Object = validate.Object

// state is what the rules know.
type state struct {
	validate.Deployment
	byID map[controllers.ID]*Object
	// live is set for the objects of a cluster, which do not include objects of other kinds than those of Flux.
	live bool
	// crds are the owners of the CustomResourceDefinitions of each kind.
	crds map[kind][]controllers.ID
	// appliers are the objects that apply an object, and tenants the namespaces with the label of a tenant.
	appliers map[controllers.ID][]controllers.ID
	tenants  map[string]bool
	// impersonates is set if the controllers use a service account for objects that name none.
	impersonates bool
}

type kind struct{ group, kind string }

// Options configure an audit.
type Options struct {
	validate.Options
	// Allow are the IDs of the rules that are not applied.
	Allow []string
}

// Run audits what a revision deploys to a cluster.
func Run(ctx context.Context, at repository.Revision, o Options) (*validate.Result, error) {
	exceptions, err := Exceptions(at.Tree)
	if err != nil {
		return nil, err
	}
	var deployed validate.Deployment
	allowed := 0
	o.Rules = func(d validate.Deployment) []validate.Found {
		deployed = d
		var found []validate.Found
		found, allowed = check(newState(d, false), o.Allow, exceptions, o.Path)
		return found
	}
	result, err := validate.Run(ctx, at, o.Options)
	if err != nil {
		return nil, err
	}
	objects := map[controllers.ID]*Object{}
	for i := range deployed.Objects {
		objects[deployed.Objects[i].ID] = &deployed.Objects[i]
	}
	result.Allowed = allowed
	result.Findings = distinct(result.Findings)
	for i := range result.Findings {
		switch f := &result.Findings[i]; {
		case f.Assumed && f.Rule == validate.RuleDeprecated:
			f.Severity = validate.Note
		case f.Assumed:
			f.Severity = validate.Warning
		}
	}
	result.Findings = slices.DeleteFunc(result.Findings, func(f validate.Finding) bool {
		if _, own := Find(f.Rule); own {
			return false
		}
		if !concerns(f) {
			return true
		}
		if f.Severity != validate.Unknown && allows(o.Allow, exceptions, f.Rule, o.Path, objects[f.Object.ID], f.Object.ID) {
			result.Allowed++
			return true
		}
		return false
	})
	sortFindings(result.Findings)
	return result, nil
}

// concerns reports whether a finding of a validation belongs to an audit: that something is missing in Git, or that a kind has
// no schema, is not a risk.
func concerns(f validate.Finding) bool {
	if f.Rule == validate.RuleMissingSchema || f.Rule == validate.RuleNotValidated && f.Severity == validate.Unknown {
		return false
	}
	return f.Severity != validate.Note || f.Assumed
}

// distinct returns findings without those that differ in the owner only: two Kustomizations may apply an object.
func distinct(findings []validate.Finding) []validate.Finding {
	seen := map[validate.Finding]bool{}
	return slices.DeleteFunc(findings, func(f validate.Finding) bool {
		f.Owner = controllers.VersionedID{}
		known := seen[f]
		seen[f] = true
		return known
	})
}

// sortFindings sorts findings by severity, and keeps the order of those with the same severity.
func sortFindings(findings []validate.Finding) {
	slices.SortStableFunc(findings, func(a, b validate.Finding) int { return cmp.Compare(Rank(a.Severity), Rank(b.Severity)) })
}

// Live audits Flux objects of a cluster.
func Live(objects []controllers.Object, namespace string, allow []string) *validate.Result {
	d := validate.Deployment{Namespace: namespace, Complete: true, Objects: make([]Object, len(objects))}
	for i, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		d.Objects[i] = Object{Object: build.Object{Unstructured: u}, ID: controllers.IDOf(o), Owner: u}
	}
	found, allowed := check(newState(d, true), allow, nil, "")
	result := &validate.Result{Objects: len(objects), Validated: len(objects), Allowed: allowed, Findings: []validate.Finding{}}
	for _, f := range found {
		f.Object = controllers.VersionedIDOf(objects[f.Index])
		f.Owner = f.Object
		result.Findings = append(result.Findings, f.Finding)
	}
	sortFindings(result.Findings)
	return result
}

func newState(d validate.Deployment, live bool) *state {
	s := &state{
		Deployment: d, live: live, byID: map[controllers.ID]*Object{}, crds: map[kind][]controllers.ID{},
		appliers: map[controllers.ID][]controllers.ID{}, tenants: map[string]bool{},
	}
	for i := range d.Objects {
		o := &d.Objects[i]
		s.byID[o.ID] = o
		owner := controllers.IDOf(o.Owner.Object)
		s.appliers[o.ID] = append(s.appliers[o.ID], owner)
		switch {
		case o.ID.IsCRD():
			k := kind{text(o, "spec.group"), text(o, "spec.names.kind")}
			s.crds[k] = append(s.crds[k], owner)
		case o.ID.IsNamespace():
			s.tenants[o.ID.Name] = o.GetLabels()["toolkit.fluxcd.io/tenant"] != "" || o.GetLabels()["toolkit.fluxcd.io/role"] == "tenant"
		case o.ID.Kind == "Deployment" && s.ofFlux(o):
			s.impersonates = s.impersonates || impersonates(o)
		case o.ID.IsFluxInstance():
			s.impersonates = s.impersonates || text(o, "spec.cluster.multitenant") == "true"
		}
	}
	return s
}

// impersonates reports whether a controller uses a service account for objects that name none.
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

// check applies the rules to all objects. It returns the findings, and the number of those that are allowed.
func check(s *state, allow []string, exceptions []Exception, path string) (found []validate.Found, allowed int) {
	for i := range s.Objects {
		o := &s.Objects[i]
		for _, r := range Rules() {
			if r.Offline && s.live {
				continue
			}
			for _, h := range r.find(s, o) {
				if allows(allow, exceptions, r.ID, path, o, o.ID) {
					allowed++
					continue
				}
				found = append(found, validate.Found{Index: i, Finding: validate.Finding{
					Severity: cmp.Or(h.severity, r.Severity), Rule: r.ID, Field: h.field, Value: h.value, Message: h.message, Fix: h.fix,
				}})
			}
		}
	}
	return found, allowed
}

// allows reports whether a rule does not apply to an object, which may be nil if it is not deployed.
func allows(allow []string, exceptions []Exception, rule, path string, o *Object, id controllers.ID) bool {
	if slices.Contains(allow, rule) {
		return true
	}
	if o != nil {
		for _, listed := range strings.Split(o.GetAnnotations()[AllowAnnotation], ",") {
			if strings.TrimSpace(listed) == rule {
				return true
			}
		}
	}
	return slices.ContainsFunc(exceptions, func(e Exception) bool { return e.matches(rule, path, id) })
}

// Rank returns the position of a severity: 0 is the most severe.
func Rank(s validate.Severity) int {
	return slices.Index([]validate.Severity{validate.Invalid, validate.Unknown, validate.Warning, validate.Note}, s)
}

// Find returns the rule with an ID.
func Find(id string) (Rule, bool) {
	for _, r := range Rules() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// text returns a field of an object, or "".
func text(o *Object, path string) string { return controllers.Path{path}.String(o.Unstructured.Object) }

// has reports whether an object has a field.
func has(o *Object, path string) bool {
	_, ok := controllers.Path{path}.Lookup(o.Unstructured.Object)
	return ok
}
