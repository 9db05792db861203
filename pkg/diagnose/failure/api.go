package failure

import (
	"strings"
	"sync"

	"github.com/fluxkit/flux/internal/lazy"
)

// apiErrors lists the errors of the Kubernetes API server, and those of Helm and ssa, which wrap them. Each pattern matches at
// the start of a part of a message.
var apiErrors = []prototype{
	{Type: TooLarge, pattern: `(?P<kind>` + kindPart + `)(?:\.(?P<group>[a-z0-9.-]+))? "(?P<name>[^"\n]*)" is invalid: \[\]: Too long: (?P<detail>[^\n]*)`},
	{Type: TooLarge, pattern: `(?P<detail>(?:Request entity too large: [^\n]*|etcdserver: request is too large))` + end, steps: []Step{Apply}},
	{Type: Invalid, pattern: `(?P<kind>` + kindPart + `)(?:\.(?P<group>[a-z0-9.-]+))? "(?P<name>[^"\n]*)" is invalid: `},
	{Type: Undecodable, pattern: `(?P<kind>` + kindPart + `) in version "(?P<version>[^"\n]*)" cannot be handled as a [^:\n]*: (?P<detail>[^\n]*)`},
	{Type: Undecodable, pattern: `failed to create typed (?:patch|live) object \((?P<namespace>[^\s/;]*)/(?P<name>[^;\n]*); (?P<version>[^,\n]*), Kind=(?P<kind>` + kindPart + `)\): (?P<detail>[^\n]*)`},
	{Type: Undecodable, pattern: `strict decoding error: (?P<detail>unknown field "[^\n]*)`},
	{Type: Undecodable, pattern: `error validating data: (?P<detail>[^\n]*)`},
	{Type: Admission, pattern: `admission webhook "(?P<by>[^"\n]+)" denied the request(?:: (?P<detail>[^\n]*)| without explanation)`},
	{Type: NoMatch, pattern: `no matches for kind "(?P<kind>[^"\n]+)" in version "(?P<version>[^"\n]+)"`},
	{Type: NoMatch, pattern: `no matches for kind "(?P<kind>[^"\n]+)" in group "(?P<group>[^"\n]*)"`},
	{Type: Conflict, pattern: `Apply failed with \d+ conflicts?: conflicts? with "(?P<by>[^"\n]+)"[^:\n]*(?: using [^:\n]*(?:at \S+)?)?:\s*(?P<detail>(?s:.*))`},
	{Type: Precondition, pattern: `Operation cannot be fulfilled on (?P<resource>[a-z0-9.]+) "(?P<name>[^"\n]*)": (?P<detail>uid mismatch: [^\n]*)`},
	{Type: Unserved, pattern: `the server could not find the requested resource(?: \([a-z]+ [^)\n]*\))?` + end, steps: []Step{Apply}},
	{Type: Conflict, pattern: `Operation cannot be fulfilled on (?P<resource>[a-z0-9.]+) "(?P<name>[^"\n]*)": (?P<detail>the object has been modified[^\n]*)`},
	{Type: NotFound, pattern: `(?P<kind>[A-Za-z][A-Za-z0-9]*)(?:\.(?P<group>[a-z0-9.-]+))? "(?P<name>[^"\n]+)" not found\s*(?:\n|$)`},
	{Type: Owned, pattern: `(?:Unable|unable) to continue with (?:install|update): (?P<kind>` + kindPart + `) "(?P<name>[^"\n]+)" in namespace "(?P<namespace>[^"\n]*)" exists and cannot be imported into the current release: (?P<detail>[^\n]*)`},
	{Type: Forbidden, pattern: `(?P<resource>[a-z][a-z0-9]*(?:\.[a-z0-9.-]+)?)(?:/[a-z]+)? (?:"(?P<name>[^"\n]*)" )?is forbidden: `},
	{Type: Unauthorized, pattern: accessPattern},
	{Type: Admission, pattern: `ValidatingAdmissionPolicy '(?P<by>[^'\n]+)' with binding '[^'\n]+' denied request: (?P<detail>[^\n]*)`},
	{Type: Unhealthy, pattern: `(?:timeout waiting for|failed early due to stalled resources): \[`},
	{Type: Unhealthy, pattern: `resource ` + objectPart + ` not ready\. status: (?P<code>\w+), message: (?P<detail>[^\n]*)`},
	{Type: Encrypted, pattern: objectPart + ` is SOPS encrypted, configuring decryption is required for this secret to be reconciled`},
	{Type: WebhookDown, pattern: `(?:no endpoints available for service|service) "(?P<name>[^"\n]+)"(?: not found)?\s*(?:\n|$)`, steps: []Step{Call}},
}

// accessPattern matches the RBAC error for a forbidden action.
const accessPattern = `User "(?P<user>(?:[^"\\\n]|\\.)+)" cannot (?P<verb>[a-z]+) (?:resource "(?P<resource>[^"\n]+)" in API group "(?P<group>[^"\n]*)"|path "(?P<resource2>[^"\n]+)")` +
	`(?P<scope> in the namespace "[^"\n]+"| at the cluster scope)?`

// forbidden lists the reasons of admission plugins after "is forbidden: ".
var forbidden = []prototype{
	{Type: Unauthorized, pattern: accessPattern},
	{Type: Quota, pattern: `exceeded quota: (?P<by>[a-z0-9.-]+), (?P<detail>requested: [^\n]*)`},
	{Type: Quota, pattern: `failed quota: (?P<by>[a-z0-9.-]+): (?P<detail>must specify [^\n]*)`},
	{Type: Quota, pattern: `(?P<detail>status unknown for quota: (?P<by>[a-z0-9.-]+), [^\n]*)`},
	{Type: Terminating, pattern: `unable to create new content in namespace (?P<namespace>[a-z0-9-]+) because it is being terminated`},
	{Type: LimitRange, pattern: `\[?(?P<detail>(?:maximum|minimum) \S+ usage per (?:Container|Pod|PersistentVolumeClaim) is [^\n]*)`},
	{Type: LimitRange, pattern: `\[?(?P<detail>\S+ max limit to request ratio per (?:Container|Pod|PersistentVolumeClaim) is [^\n]*)`},
	{Type: PodSecurity, pattern: `violates PodSecurity "(?P<by>[^"\n]+)": (?P<detail>[^\n]*)`},
	{Type: Admission, pattern: `ValidatingAdmissionPolicy '(?P<by>[^'\n]+)' with binding '[^'\n]+' denied request: (?P<detail>[^\n]*)`},
	{Type: PriorityClass, pattern: `no PriorityClass with name (?P<name>\S+) was found`},
	{Type: ServiceAccount, pattern: `error looking up service account (?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+): `},
	{Type: Forbidden, pattern: `(?P<detail>[^\n]*)`},
}

// prototype is the pattern of an error. It matches only in one of the steps; nil means any step.
type prototype struct {
	Type    Type
	pattern string
	steps   []Step
}

// compiled returns the compiled patterns of the lists.
func compiled(all ...[]prototype) []expression[prototype] {
	var expressions []expression[prototype]
	for _, list := range all {
		for _, p := range list {
			expressions = append(expressions, newExpression(p, p.pattern))
		}
	}
	return expressions
}

var typedExpressions = sync.OnceValue(func() []expression[prototype] {
	return compiled(buildErrors, apiErrors, networkErrors, serverErrors, gitErrors, controllerErrors)
})

var forbiddenExpressions = sync.OnceValue(func() []expression[prototype] { return compiled(forbidden) })

// typed parses the error at the start of s and reports whether the error is known.
func (f *Failure) typed(s string) bool {
	for _, e := range typedExpressions() {
		if e.T.steps != nil && !f.In(e.T.steps...) {
			continue
		}
		m := e.match(s)
		if m == nil {
			continue
		}
		candidate := *f
		candidate.Text = firstLine(s)
		candidate.Type = e.T.Type
		named := candidate.named(e.re, s, m)
		if !candidate.refine(named, s[m[1]:]) {
			continue
		}
		*f = candidate
		return true
	}
	return false
}

// refine parses the rest of an error after the match. It returns false if the rest does not fit the type.
func (f *Failure) refine(named Object, rest string) bool {
	switch f.Type {
	case Invalid:
		all, ok := fields(rest)
		if !ok {
			return false
		}
		f.Fields, f.Named = all, named
		f.Detail = firstLine(rest)
	case Forbidden:
		f.Named = Object{Kind: kindOf(f.Resource), Name: named.Name, Namespace: f.Object.Namespace}
		return f.refused(rest)
	case Unhealthy:
		return f.unhealthy(named, rest)
	case Status:
		return f.status()
	case Conflict:
		f.Named = named
		f.Detail = strings.Join(strings.Fields(strings.ReplaceAll(f.Detail, "\n- ", " ")), " ")
	case Unauthorized:
		f.Scope = strings.TrimSpace(f.Scope)
	default:
		named.Kind = kindOf(named.Kind)
		if named != (Object{}) {
			f.Named = named
		}
	}
	return true
}

// refused parses the reason why an admission plugin or RBAC rejects an object.
func (f *Failure) refused(rest string) bool {
	for _, e := range forbiddenExpressions() {
		m := e.match(rest)
		if m == nil {
			continue
		}
		f.Type = e.T.Type
		named := f.named(e.re, rest, m)
		switch {
		case f.Type == Terminating:
			f.Named = Object{Kind: "Namespace", Name: named.Namespace}
		case f.Type == PriorityClass, f.Type == ServiceAccount:
			named.Kind = map[Type]string{PriorityClass: "PriorityClass", ServiceAccount: "ServiceAccount"}[f.Type]
			f.Named = named
		}
		f.Scope = strings.TrimSpace(f.Scope)
		f.Detail = strings.TrimSuffix(f.Detail, "]")
		return true
	}
	return false
}

// health matches an object in a list of unhealthy objects.
var health = lazy.Regexp(`^` + objectPart + ` status: '(?P<code>[A-Za-z]+)'`)

// unhealthy parses a list of unhealthy objects, or a single one.
func (f *Failure) unhealthy(named Object, rest string) bool {
	if named.Kind != "" {
		f.Objects = []ObjectStatus{{named, f.Code, f.Detail}}
		f.Code, f.Detail = "", ""
		return true
	}
	for len(f.Objects) < mostFields {
		m := health().FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		var one Failure
		o := one.named(health(), rest, m)
		rest = rest[m[1]:]
		h := ObjectStatus{Object: o, Status: one.Code}
		n := nextHealth(rest)
		h.Detail = strings.TrimPrefix(rest[:n], ": ")
		f.Objects = append(f.Objects, h)
		var more bool
		if rest, more = strings.CutPrefix(rest[n:], ", "); !more {
			break
		}
	}
	return len(f.Objects) > 0
}

// nextHealth returns the end of an object's detail: before the next object in the list, or at the end of the list.
func nextHealth(s string) int {
	for i := range len(s) {
		if s[i] == '\n' || s[i] == ']' && strings.TrimSpace(s[i+1:]) == "" || strings.HasPrefix(s[i:], ", ") && health().MatchString(s[i+2:]) {
			return i
		}
	}
	return len(s)
}

// kindOf returns the kind for the plural resource name in an error.
func kindOf(resource string) string {
	switch resource {
	case "secrets":
		return "Secret"
	case "configmaps":
		return "ConfigMap"
	case "namespaces":
		return "Namespace"
	case "serviceaccounts":
		return "ServiceAccount"
	default:
		return resource
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(s)
}
