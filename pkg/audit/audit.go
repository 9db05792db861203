// Package audit finds risks in what a repository deploys, and in the Flux objects of a cluster: secrets in plain text,
// connections without TLS, unpinned versions, and settings that cause failures or make them hard to repair.
//
// Unlike package review, it checks objects, not changes. It also reports the findings of package validate: an invalid object
// fails sooner or later.
package audit

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/validate"
)

// AllowAnnotation lists the IDs of the rules that do not apply to an object, separated by commas.
const AllowAnnotation = "fluxkit.dev/allow-audit"

// Options configure an audit.
type Options struct {
	validate.Options
	Exclusions
}

// Exclusions lists the findings to exclude.
type Exclusions struct {
	// Allow lists the IDs of the rules that are not applied.
	Allow []string
	// Strict ignores the exceptions in the file of a repository and in annotations.
	Strict bool

	exceptions []Exception
	path       string
}

// Run audits what a revision deploys to a cluster.
func Run(ctx context.Context, at repository.Revision, o Options) (*validate.Result, error) {
	if o.path = o.Path; !o.Strict {
		var err error
		if o.exceptions, err = Exceptions(at.Tree); err != nil {
			return nil, err
		}
	}
	var deployed validate.Deployment
	allowed := 0
	o.Rules = func(d validate.Deployment) []validate.Found {
		deployed = d
		var found []validate.Found
		found, allowed = check(newState(d, false), o.Exclusions)
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
		if f.Severity != validate.Unknown && o.excludes(f.Rule, objects[f.Object.ID], f.Object.ID) {
			result.Allowed++
			return true
		}
		return false
	})
	sortFindings(result.Findings)
	return result, nil
}

// concerns reports whether an audit includes a finding of a validation. Objects that are missing in Git and kinds without a
// schema are not risks.
func concerns(f validate.Finding) bool {
	if f.Rule == validate.RuleMissingSchema || f.Rule == validate.RuleNotValidated && f.Severity == validate.Unknown {
		return false
	}
	return f.Severity != validate.Note || f.Assumed
}

// distinct removes findings that differ only in the owner, because two Kustomizations may apply an object.
func distinct(findings []validate.Finding) []validate.Finding {
	seen := map[validate.Finding]bool{}
	return slices.DeleteFunc(findings, func(f validate.Finding) bool {
		f.Owner = controllers.VersionedID{}
		known := seen[f]
		seen[f] = true
		return known
	})
}

// sortFindings sorts findings by severity. The sort is stable.
func sortFindings(findings []validate.Finding) {
	slices.SortStableFunc(findings, func(a, b validate.Finding) int { return cmp.Compare(Rank(a.Severity), Rank(b.Severity)) })
}

// Live audits Flux objects of a cluster.
func Live(objects []controllers.Object, namespace string, e Exclusions) *validate.Result {
	d := validate.Deployment{Namespace: namespace, Complete: true, Objects: make([]Object, len(objects))}
	for i, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		d.Objects[i] = Object{Object: build.Object{Unstructured: u}, ID: controllers.IDOf(o), Owner: u}
	}
	found, allowed := check(newState(d, true), e)
	result := &validate.Result{Objects: len(objects), Validated: len(objects), Allowed: allowed, Findings: []validate.Finding{}}
	for _, f := range found {
		f.Object = controllers.VersionedIDOf(objects[f.Index])
		f.Owner = f.Object
		result.Findings = append(result.Findings, f.Finding)
	}
	sortFindings(result.Findings)
	return result
}

// check applies the rules to all objects. It returns the findings and the number of excluded findings.
func check(s *state, e Exclusions) (found []validate.Found, allowed int) {
	for i := range s.Objects {
		o := &s.Objects[i]
		for _, r := range Rules() {
			if r.Offline && s.live {
				continue
			}
			for _, h := range r.find(s, o) {
				if e.excludes(r.ID, o, o.ID) {
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

// excludes reports whether a rule does not apply to an object. The object may be nil if it is not deployed.
func (e Exclusions) excludes(rule string, o *Object, id controllers.ID) bool {
	if slices.Contains(e.Allow, rule) {
		return true
	}
	if !e.Strict && o != nil && controllers.Lists(o.Unstructured.Object, AllowAnnotation, rule) {
		return true
	}
	return slices.ContainsFunc(e.exceptions, func(exception Exception) bool { return exception.matches(rule, e.path, id) })
}

// Find returns the rule with the given ID.
func Find(id string) (Rule, bool) {
	for _, r := range Rules() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}
