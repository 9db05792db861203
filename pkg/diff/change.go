// Package diff compares what a Kustomization would apply with what is live. It
// asks the API server for a dry run of every object, as kustomize-controller
// does before it applies, and returns typed changes. It prints nothing and
// changes nothing; secret values never leave it.
package diff

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// RefOf names an object that is at hand.
func RefOf(o *unstructured.Unstructured) Ref {
	gvk := o.GroupVersionKind()
	return Ref{gvk.Group, gvk.Version, gvk.Kind, o.GetNamespace(), o.GetName()}
}

// String is Kind/namespace/name, or Kind/name of what is in no namespace.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

func (r Ref) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// identity is what makes an object the same in another version of its kind.
func (r Ref) identity() Ref {
	r.Version = ""
	return r
}

// Action is what the controller will do with an object.
type Action string

// What the controller does with an object. Unchanged and Skipped are no
// changes; Failed is one that it will not be able to make.
const (
	Created   Action = "created"
	Changed   Action = "changed"
	Recreated Action = "recreated"
	Pruned    Action = "pruned"
	Unchanged Action = "unchanged"
	Skipped   Action = "skipped"
	Failed    Action = "failed"
	// Encrypted is an object that cannot be read here: it is as good as changed.
	Encrypted Action = "encrypted"
)

// Danger is a reason to look twice before a change is let through.
type Danger string

// The dangers that a change may carry.
const (
	// DangerPrune is an object that goes away.
	DangerPrune Danger = "prune"
	// DangerImmutable is a field that cannot be changed in place.
	DangerImmutable Danger = "immutable"
	// DangerData is a claim on storage that goes away or is made anew.
	DangerData Danger = "persistent-volume-claim"
	// DangerDefinition is a definition that takes all its objects with it.
	DangerDefinition Danger = "crd-removal"
	// DangerNamespace is a namespace that takes all it holds with it.
	DangerNamespace Danger = "namespace-removal"
	// DangerLost is an object that the controller will delete and then fail to create.
	DangerLost Danger = "deleted-and-not-recreated"
)

// Op says how a field differs.
type Op string

// How a field differs.
const (
	Added     Op = "added"
	Removed   Op = "removed"
	Replaced  Op = "replaced"
	Reordered Op = "reordered"
)

// Field is one difference between the live object and the one to come.
type Field struct {
	// Path is for people: names with dots between them, an element of a list by
	// its name where it has one.
	Path string `json:"path"`
	// Pointer is the RFC 6901 path, an element of a list by its index: in the
	// live object where it is removed, else in the one to come.
	Pointer string `json:"pointer"`
	Op      Op     `json:"op"`
	Before  any    `json:"before,omitempty"`
	After   any    `json:"after,omitempty"`
	// Parent is the path of the map or list that the field is in, and InList says which.
	Parent string `json:"-"`
	Key    string `json:"-"`
	InList bool   `json:"-"`
}

// Image is a container image that changes.
type Image struct {
	Container string `json:"container"`
	Before    string `json:"before,omitempty"`
	After     string `json:"after,omitempty"`
}

// Change is what will happen to one object.
type Change struct {
	Object Ref    `json:"object"`
	Action Action `json:"action"`
	// Reason is why an object is skipped, recreated, or what the controller will fail with.
	Reason  string   `json:"reason,omitempty"`
	Fields  []Field  `json:"fields,omitempty"`
	Images  []Image  `json:"images,omitempty"`
	Dangers []Danger `json:"dangers,omitempty"`
	// Notes are what could not be found out, such as an encrypted value that nobody here can read.
	Notes []string `json:"notes,omitempty"`
	// Before and After are the object without what the server keeps about it,
	// secret values masked. One of them is nil where there is no such object.
	Before *unstructured.Unstructured `json:"-"`
	After  *unstructured.Unstructured `json:"-"`
}

// Different tells whether the controller will change the object, or try to.
func (c Change) Different() bool { return c.Action != Unchanged && c.Action != Skipped }

// Left tells whether the object differs, and the controller leaves it so.
func (c Change) Left() bool { return c.Action == Skipped && (c.Before != nil || c.After != nil) }

// Result has the changes that a Kustomization or a HelmRelease makes.
type Result struct {
	// Owner is the Kustomization or HelmRelease.
	Owner    Ref    `json:"owner"`
	Revision string `json:"revision,omitempty"`
	// Drift reports whether what is compared is what was applied last, so that
	// objects that differ have been changed by something else.
	Drift bool `json:"drift,omitempty"`
	// Step is what becomes of the release, where it is about a HelmRelease.
	Step Step `json:"step,omitempty"`
	// Hooks are run with the step. They are no objects of the release, and not compared.
	Hooks []Ref `json:"hooks,omitempty"`
	// Changes has every object that is looked at once: those to apply in the
	// order of the build, then those to prune.
	Changes []Change `json:"changes"`
	// Warnings concern the whole, such as a suspended Kustomization.
	Warnings []string `json:"warnings,omitempty"`
	// Builds tells that two builds are compared, and no cluster.
	Builds bool `json:"-"`
}

// Count returns how many objects an action concerns.
func (r *Result) Count(a Action) int {
	n := 0
	for _, c := range r.Changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

// Different tells whether anything will change.
func (r *Result) Different() bool {
	for _, c := range r.Changes {
		if c.Different() {
			return true
		}
	}
	return false
}
