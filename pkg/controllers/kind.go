package controllers

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Verb is a set of verbs that a kind supports.
type Verb uint

// Verbs of the catalog.
const (
	Get Verb = 1 << iota
	Export
	Suspend
	Resume
	Reconcile
	Delete
	Tree
	Create
	History
	Rollback
)

// Kind is a row of the catalog: a custom resource and the facts that commands
// need.
type Kind struct {
	// Version is the newest API version, which is the storage version in the default Flux version.
	Group, Version, Kind, Resource string
	// Older lists the API versions that older Flux versions serve, newest
	// first.
	Older []string
	// Portable is the API version of manifests that create exports, if it is not Version: the newest
	// version that all embedded Flux versions serve. A manifest must be valid without access to the
	// cluster, and both before and after an upgrade: Flux 2.9 serves Alerts and Providers only in
	// v1beta3, and 2.10 still serves it.
	Portable string
	// Removed lists the fields that newer versions do not have.
	Removed []Removed
	// Controller is the name of the controller that reconciles the kind.
	Controller string

	// Family is the command above Word: "source", "image" or "artifact". It is "" if the kind is a
	// direct subcommand of the verb.
	Family string
	// Word, Plural and Short are the names of the kind on the command line.
	Word, Plural, Short string

	// Examples holds the objects in the help of commands.
	Examples Examples

	// Verbs holds the supported verbs.
	Verbs Verb
	// Required lists the flags that create requires, with placeholders in angle brackets. It is "" for
	// kinds that create does not support or to which no other kind refers.
	Required string
	// Columns lists the columns between NAME and READY in the output of get.
	Columns []Column
	// Source is the reference to the source, for --show-source and --with-source.
	Source *Ref
	// Refs lists the references to other objects, except the source.
	Refs []Ref
	// Results is the reference to the objects whose results an object of the kind records. The
	// references are in its status only.
	Results *Ref
	// Produces is the reference to the objects that the controller creates from an object of the kind, and
	// their relation to it.
	Produces *Ref
	// Suspension describes how to suspend an object.
	Suspension Suspension
	// Static reports whether an object has no Ready condition and is always
	// ready. It is nil for kinds that always have the condition.
	Static func(Object) bool
	// Done is the message after a reconciliation. It contains "%s" for Result.
	Done string
	// Result is the outcome of a reconciliation: a revision, an image or a
	// count.
	Result Path
	// Attempts lists the fields with the attempted revision, for each kind of source.
	Attempts []Attempt
	// Schedule lists the annotations with the interval and the timeout of a kind whose spec has neither.
	Schedule Schedule
	// Inventory holds the list of objects that an object of the kind manages.
	Inventory Path
	// Recreate is the annotation whose value "enabled" allows the controller to delete and recreate
	// objects with changed immutable fields.
	Recreate string
	// Keep is the annotation that prevents the deletion of an object when it is removed from the
	// source.
	Keep Setting
	// Prunes is set if the controller always deletes objects that are removed from an object of the
	// kind, without a field that enables it.
	Prunes bool
	// Fetch lists the spec fields with the address and the credentials of a server.
	Fetch Fetch
	// Secrets lists the fields that reference a Secret: {name}, a list of such references, or only its name.
	Secrets []string
	// Attempted lists the conditions that still report a failed action after Ready reports its
	// remediation.
	Attempted []string
	// Drift is the field that enables drift correction. It is nil for kinds whose controller
	// corrects drift in every reconciliation.
	Drift Path
	// Recorded is set if status.history lists every reconciliation. The history of a HelmRelease
	// lists releases, which do not determine the next reconciliation.
	Recorded bool
	// Reported is set if the controller writes the spec. The generation of an object then does not
	// indicate whether its status is current.
	Reported bool
	// Actions lists the actions during which Ready is Unknown, as named in the message of the Reconciling condition.
	Actions []string
	// Release is set if the kind manages a Helm release. The release storage then holds the desired
	// state.
	Release bool
	// Health describes the health checks after an apply. It is nil for kinds without them.
	Health *Health
	// Decryption is the field that enables the decryption of SOPS secrets.
	Decryption Path
	// Webhook is set if Result is the path of a webhook.
	Webhook bool
	// Server is the name of the service that serves the artifacts, if it is not source-controller.
	Server string
	// Manager is the field manager of the controller.
	Manager string
	// Label is the prefix of the owner labels of objects that the controller applies, if it is not Group.
	Label string
}

// Examples holds the names of two objects of a kind and a revision of one of them. If the revision
// is empty, the help omits that example.
type Examples struct {
	Names    [2]string
	Revision string
}

// Fetch lists the spec fields with the address and credentials of a server. A field is "" if the
// kind does not have it.
type Fetch struct {
	// Address is the field with the URL, endpoint or image, and Bucket the name of a bucket there.
	// Revision is the field that selects a revision of it.
	Address, Bucket, Revision string
	// Pin is the field that selects a single revision: a commit or a digest.
	Pin string
	// Charts is set for a repository of charts, of which a release selects one by its version.
	Charts bool
	// Credentials is the field that references the Secret with the credentials, and CA the Secret
	// with the CA certificate.
	Credentials, CA string
	// Login is the subcommand of `flux create secret` that creates the
	// credentials.
	Login string
}

// Column is a column of a table.
type Column struct {
	Header string
	// Field is the field to print, with shortened digests.
	Field Path
	// Value computes the text if it is not the value of Field.
	Value func(Kind, Object) string
}

// Ref describes references to other objects.
type Ref struct {
	// Relation is the purpose of the reference: source, chart, dependency,
	// provider, image, include or resource.
	Relation string
	// Path is the field with {kind, name, namespace}, or with a list of such references.
	Path Path
	// Field is the field of each element with the reference, "" if the element is the reference.
	Field string
	// Kinds lists the kinds that the reference may have. A single kind is the default.
	Kinds []string
	// CrossNamespace allows a reference to another namespace. Absolute is set if a reference without a namespace is not to
	// the namespace of the object: the target may be cluster-scoped.
	CrossNamespace, Absolute bool
	// Keyed is set if Path is a map with the names as keys.
	Keyed bool
}

// Suspension describes how to suspend an object: with a boolean field, or with an annotation and
// its value.
type Suspension struct {
	Field             Path
	Annotation, Value string
}

// Schedule lists the annotations with the reconciliation interval and timeout, and the defaults for objects without
// them.
type Schedule struct {
	Interval, Timeout               string
	DefaultInterval, DefaultTimeout time.Duration
}

// IntervalOf returns the interval in which the controller reconciles an object, or zero if it has none.
func IntervalOf(k Kind, o Object) time.Duration {
	if k.Schedule.Interval == "" {
		return span(Path{"spec.interval"}.String(o), 0)
	}
	return span(Annotation(o, k.Schedule.Interval), k.Schedule.DefaultInterval)
}

// RetryIntervalOf returns the interval in which the controller retries a failed reconciliation, or zero if it has none.
func RetryIntervalOf(o Object) time.Duration { return span(Path{"spec.retryInterval"}.String(o), 0) }

// AnnotatedTimeout returns the timeout of a reconciliation of a kind that has it in an annotation, and zero for other kinds.
func AnnotatedTimeout(k Kind, o Object) time.Duration {
	return span(Annotation(o, k.Schedule.Timeout), k.Schedule.DefaultTimeout)
}

// span parses a duration. The API server rejects an invalid field, and flux-operator uses the default instead of an invalid
// annotation.
func span(text string, otherwise time.Duration) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return otherwise
	}
	return d
}

// Is reports whether the object is suspended.
func (s Suspension) Is(o Object) bool {
	if s.Annotation != "" {
		return strings.EqualFold(Annotation(o, s.Annotation), s.Value) // as the controller compares
	}
	v, _ := s.Field.Lookup(o)
	b, _ := v.(bool)
	return b
}

// Change returns the merge patch (RFC 7396) that suspends or resumes an object.
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

// Possible reports whether objects of the kind can be suspended.
func (s Suspension) Possible() bool { return s.Annotation != "" || len(s.Field) > 0 }

// Has reports whether the kind supports all the verbs.
func (k Kind) Has(v Verb) bool { return k.Verbs&v == v }

// Noun returns the name of the kind in messages: "kustomization", "source git".
func (k Kind) Noun() string { return strings.TrimSpace(k.Family + " " + k.Word) }

// CRD returns the name of the CustomResourceDefinition.
func (k Kind) CRD() string { return k.Resource + "." + k.Group }

// OwnerLabels returns the label keys for the name and the namespace of the object that applied an object.
func OwnerLabels(k Kind) (name, namespace string) {
	prefix := cmp.Or(k.Label, k.Group)
	return prefix + "/name", prefix + "/namespace"
}

// APIVersion returns the group and version, as in manifests.
func (k Kind) APIVersion() string { return k.Group + "/" + k.Version }

// PortableAPIVersion returns the group and version that all embedded Flux versions serve.
func PortableAPIVersion(k Kind) string { return k.Group + "/" + cmp.Or(k.Portable, k.Version) }

// FindKind returns the row with the given Kind, ignoring case.
func FindKind(kind string) (Kind, bool) {
	for i := range Known { // a copy of each row takes longer than the comparison
		if strings.EqualFold(Known[i].Kind, kind) {
			return Known[i], true
		}
	}
	return Kind{}, false
}

// KindOf returns the row with the given group and kind, of Flux or of flux-operator.
func KindOf(group, kind string) (Kind, bool) {
	if k, ok := FindKind(kind); ok && k.Group == group {
		return k, true
	}
	return Kind{}, false
}

// Family returns the rows of a family, in the order of the catalog.
func Family(name string) []Kind {
	var rows []Kind
	for _, k := range Kinds {
		if k.Family == name {
			rows = append(rows, k)
		}
	}
	return rows
}

// Groups returns the API groups of Flux.
func Groups() []string {
	var groups []string
	for _, k := range Kinds {
		if !slices.Contains(groups, k.Group) {
			groups = append(groups, k.Group)
		}
	}
	return groups
}

// Annotate adds annotations to a merge patch.
func Annotate(change, annotations map[string]any) {
	for _, field := range []string{"metadata", "annotations"} {
		below, ok := change[field].(map[string]any)
		if !ok {
			below = map[string]any{}
			change[field] = below
		}
		change = below
	}
	maps.Copy(change, annotations)
}
