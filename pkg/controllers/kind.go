package controllers

import (
	"slices"
	"strings"
)

// Verb is a set of the verbs that apply to a kind.
type Verb uint

// The verbs that the catalogue knows.
const (
	Get Verb = 1 << iota
	Export
	Suspend
	Resume
	Reconcile
	Delete
	Tree
	Create
)

// Kind is a row of the catalogue: a custom resource and all that verbs need to know of it.
type Kind struct {
	Group, Version, Kind, Resource string
	// Older lists the versions that older clusters serve, newest first.
	Older []string
	// Controller is the name of the controller that reconciles the kind.
	Controller string

	// Family is the word above Word on the command line: "source", "image",
	// "artifact", or "" where the kind stands directly below the verb.
	Family string
	// Word, Plural and Short are what users type for the kind.
	Word, Plural, Short string

	// Verbs says which verbs apply.
	Verbs Verb
	// Columns stand between NAME and READY in the table of get.
	Columns []Column
	// Source is where --show-source and --with-source find the source.
	Source *Ref
	// Refs are the other objects that an object of the kind depends on.
	Refs []Ref
	// Results are the objects whose results an object of the kind writes down;
	// only its status names them.
	Results *Ref
	// Suspension is how an object is suspended.
	Suspension Suspension
	// Static decides that an object has no Ready condition of its own and is
	// taken as ready; nil where every object has one.
	Static func(Object) bool
	// Done is what a finished reconciliation reports, "%s" standing for Result.
	Done string
	// Result is the outcome of a reconciliation: a revision, an image, a count.
	Result Path
	// Attempts say what of its source the controller last worked on.
	Attempts []Attempt
	// Inventory lists the objects that an object of the kind manages.
	Inventory Path
	// Recreate is the annotation, set to enabled, by which the controller deletes
	// and recreates what it cannot change.
	Recreate string
	// Keep is the annotation by which an object stays on the cluster when it is
	// removed from the source of what applies it.
	Keep Mark
	// Fetch names the fields of its spec by which the kind reaches a server.
	Fetch Fetch
	// Secrets are the fields that name a Secret, {name} each or a list of these.
	Secrets []string
	// Attempted are the conditions that keep the failure of an action while Ready
	// tells of what the controller has done about it.
	Attempted []string
	// Drift is the field by which the controller corrects what others change of
	// these; nil where every reconciliation applies all of them.
	Drift Path
	// Manager is the field manager that the controller applies them as.
	Manager string
}

// Fetch are the fields of a spec by which a kind reaches a server, "" where it
// has no such field.
type Fetch struct {
	// Address is the URL, endpoint or image, and Revision what selects a part of it.
	Address, Revision string
	// Credentials refers to the Secret with credentials, CA to that with the
	// certificate of a certificate authority.
	Credentials, CA string
	// Login is the word of `flux create secret` that creates these credentials.
	Login string
}

// Column is a column of a table.
type Column struct {
	Header string
	// Field is what the column shows, digests shortened.
	Field Path
	// Value computes the text where it is not simply a field.
	Value func(Kind, Object) string
}

// Ref is a reference to other objects.
type Ref struct {
	// Relation names what the reference is for: source, chart, dependency, provider, image, resource.
	Relation string
	// Path leads to {kind, name, namespace} or to a list of these.
	Path Path
	// Kinds are the kinds that it may point to; the only one is implied where the reference names none.
	Kinds []string
	// CrossNamespace says that the reference may name another namespace.
	CrossNamespace bool
	// Keyed says that Path leads to a map whose keys are the names.
	Keyed bool
}

// Suspension is how an object is suspended: a field that is set to true, or
// an annotation with a value.
type Suspension struct {
	Field             Path
	Annotation, Value string
}

// Is tells whether the object is suspended.
func (s Suspension) Is(o Object) bool {
	if s.Annotation != "" {
		return Annotation(o, s.Annotation) == s.Value
	}
	v, _ := s.Field.Lookup(o)
	b, _ := v.(bool)
	return b
}

// Change is the merge patch (RFC 7396) that suspends or resumes an object.
func (s Suspension) Change(suspended bool) map[string]any {
	if s.Annotation == "" {
		return map[string]any{"spec": map[string]any{"suspend": suspended}}
	}
	var value any // null removes the annotation
	if suspended {
		value = s.Value
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{s.Annotation: value}}}
}

// Possible tells whether objects of the kind can be suspended at all.
func (s Suspension) Possible() bool { return s.Annotation != "" || len(s.Field) > 0 }

// Has tells whether all the verbs apply to the kind.
func (k Kind) Has(v Verb) bool { return k.Verbs&v == v }

// Noun is how messages call the kind: "kustomization", "source git".
func (k Kind) Noun() string { return strings.TrimSpace(k.Family + " " + k.Word) }

// CRD is the name of the CustomResourceDefinition.
func (k Kind) CRD() string { return k.Resource + "." + k.Group }

// APIVersion is the group and version as manifests write them.
func (k Kind) APIVersion() string { return k.Group + "/" + k.Version }

// FindKind returns the row of a kind by its Kind, in any case.
func FindKind(kind string) (Kind, bool) {
	for _, k := range Kinds {
		if strings.EqualFold(k.Kind, kind) {
			return k, true
		}
	}
	return Kind{}, false
}

// KindOf returns the row of an object's group and kind.
func KindOf(group, kind string) (Kind, bool) {
	k, ok := FindKind(kind)
	return k, ok && k.Group == group
}

// Family returns the rows below a family's word, in the order of the catalogue.
func Family(name string) []Kind {
	var rows []Kind
	for _, k := range Kinds {
		if k.Family == name {
			rows = append(rows, k)
		}
	}
	return rows
}

// Groups returns the API groups of Flux, each once.
func Groups() []string {
	var groups []string
	for _, k := range Kinds {
		if !slices.Contains(groups, k.Group) {
			groups = append(groups, k.Group)
		}
	}
	return groups
}
