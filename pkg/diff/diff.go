// Package diff defines the result of a comparison: for each Kustomization and HelmRelease, the changes that its controller
// makes, field by field. Values that come from Secrets are masked in all results.
//
// Its subpackages find the changes: builds compares two builds, and dryrun compares a build with a cluster, after helmplan
// has determined what helm-controller does with a release. Package compare prepares the builds for a cluster, and package
// revision prepares the builds of two revisions of a repository. Packages review, render and publish use the result.
package diff

import (
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Action is the operation of the controller on an object.
type Action string

// Unchanged and Skipped are not changes; Failed is a change that the controller
// cannot make.
const (
	Created   Action = "created"
	Changed   Action = "changed"
	Recreated Action = "recreated"
	Pruned    Action = "pruned"
	Unchanged Action = "unchanged"
	Skipped   Action = "skipped"
	Failed    Action = "failed"
	// Unstable is an object that differs only in values that differ on every
	// rendering, such as generated passwords. It is not a change.
	Unstable Action = "unstable"
	// Blocked is a Kustomization or HelmRelease that is no longer reconciled, because of its
	// dependencies.
	Blocked Action = "blocked"
	// Ignored is an object that differs only in fields that the user ignores. It is not a change.
	Ignored Action = "ignored"
	// Encrypted is an object that cannot be decrypted here; it counts as changed.
	Encrypted Action = "encrypted"
)

// Danger is a reason to review a change before it is merged. The rules are in package review.
type Danger struct {
	// Rule is the ID of the rule.
	Rule string `json:"rule"`
	// Detail identifies the occurrence if the object alone does not.
	Detail string `json:"detail,omitempty"`
	// Notice reports whether the danger is for information only.
	Notice bool `json:"notice,omitempty"`
	// Allowed is the flag or annotation that allows the danger.
	Allowed string `json:"allowed,omitempty"`
}

// Dangers that only the dry run on a server detects.
const (
	// DangerImmutable marks a change of an immutable field.
	DangerImmutable = "immutable"
	// DangerLost marks an object that the controller will delete and then fail to create.
	DangerLost = "deleted-and-not-recreated"
)

// Op is the type of a difference between fields.
type Op string

// Operations on a field.
const (
	Added     Op = "added"
	Removed   Op = "removed"
	Replaced  Op = "replaced"
	Reordered Op = "reordered"
)

// Field is one difference between the live and the desired object.
type Field struct {
	// Path is the readable path: names separated by dots, an element of a list by its name if it
	// has one.
	Path string `json:"path"`
	// Pointer is the RFC 6901 path. An element of a list has its index: in the live object if it
	// is removed, else in the desired one.
	Pointer string `json:"pointer"`
	Op      Op     `json:"op"`
	Before  any    `json:"before,omitempty"`
	After   any    `json:"after,omitempty"`
	// Owners lists the field managers that own the live field, newest first, if they were requested.
	Owners []FieldOwner `json:"owners,omitempty"`
	// Parent is the path of the map or list that contains the field, and InList reports whether that is a list.
	Parent string `json:"-"`
	Key    string `json:"-"`
	InList bool   `json:"-"`
}

// FieldOwner is a field manager with the time at which it last changed any of its fields, or nil if the time is unknown.
type FieldOwner struct {
	Manager     string     `json:"manager"`
	Subresource string     `json:"subresource,omitempty"`
	At          *time.Time `json:"at,omitempty"`
}

// Image is a changed container image.
type Image struct {
	Container string `json:"container"`
	Before    string `json:"before,omitempty"`
	After     string `json:"after,omitempty"`
	// Registry is the result of the image check of After, or nil if it was not checked.
	Registry *ImageCheck `json:"registry,omitempty"`
}

// ImageState is the result of an image check.
type ImageState string

// Results of an image check. An image is unknown if the registry could not be queried.
const (
	ImageFound   ImageState = "found"
	ImageMissing ImageState = "missing"
	ImageUnknown ImageState = "unknown"
)

// ImageCheck is the result of looking up an image in its registry.
type ImageCheck struct {
	State ImageState `json:"state"`
	// Platforms lists the platforms of an existing image, such as linux/amd64.
	Platforms []string `json:"platforms,omitempty"`
	// Reason is the reason why the image is missing or unknown.
	Reason string `json:"reason,omitempty"`
}

// Change is the change of one object.
type Change struct {
	Object controllers.VersionedID `json:"object"`
	Action Action                  `json:"action"`
	// Reason is the reason why an object is skipped or recreated, or the error with which the
	// controller will fail.
	Reason  string   `json:"reason,omitempty"`
	Fields  []Field  `json:"fields,omitempty"`
	Images  []Image  `json:"images,omitempty"`
	Dangers []Danger `json:"dangers,omitempty"`
	// Drift reports whether the object was changed outside Flux: the compared build contains the object as it was last
	// applied, although other objects of the build may differ.
	Drift bool `json:"drift,omitempty"`
	// Orphaned reports whether the object is removed from the source and remains on the cluster,
	// because nothing prunes it.
	Orphaned bool `json:"orphaned,omitempty"`
	// IgnoredFields is the number of fields that differ and are ignored.
	IgnoredFields int `json:"ignoredFields,omitempty"`
	// Moved is the previous owner of an object that moves here from another owner, or the new owner of an object that is
	// skipped because it moves there.
	Moved *controllers.VersionedID `json:"-"`
	// Hook lists the events at which Helm creates the object, such as pre-upgrade, if it is a hook. A hook is not part of the release.
	Hook string `json:"hook,omitempty"`
	// Unset holds the names of variables without a value that the object has gained.
	Unset []string `json:"-"`
	// Notes holds additional information, such as values that cannot be decrypted here.
	Notes []string `json:"notes,omitempty"`
	// File defines the object in the repository, or the HelmRelease that installs it, with the line of its first change, or
	// of its definition. They are "" and 0 if they are not known or were not requested.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Digest identifies the masked values: it differs if they differ. It is empty if no value is
	// masked.
	Digest string `json:"-"`
	// Before and After are the object without the fields that the server maintains, with secret
	// values masked. One of them is nil for an object that is created or deleted.
	Before *unstructured.Unstructured `json:"-"`
	After  *unstructured.Unstructured `json:"-"`
}

// Different reports whether the controller will change the object, or try to.
func (c Change) Different() bool {
	return c.Action != Unchanged && c.Action != Skipped && c.Action != Unstable && c.Action != Ignored
}

// Left reports whether the object differs and the controller does not change it.
func (c Change) Left() bool { return c.Action == Skipped && (c.Before != nil || c.After != nil) }

// Drifted reports whether the object of a change was changed outside Flux.
func (r *Result) Drifted(c Change) bool { return c.Action == Changed && (r.Drift || c.Drift) }

// Result holds the changes that a Kustomization or a HelmRelease makes.
type Result struct {
	// Cluster is the directory of the cluster, if several are compared.
	Cluster string `json:"cluster,omitempty"`
	// Owner is the Kustomization or HelmRelease.
	Owner    controllers.VersionedID `json:"owner"`
	Revision string                  `json:"revision,omitempty"`
	// Path is the directory of a Kustomization in its source.
	Path string `json:"path,omitempty"`
	// File and Line locate the owner, as in Change.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Drift reports whether the compared build was the last applied one. An object that differs was then changed outside
	// Flux.
	Drift bool `json:"drift,omitempty"`
	// Step is the operation on the release of a HelmRelease.
	Step Step `json:"step,omitempty"`
	// Hooks lists the Helm hooks of the step. They are not part of the release and are not compared.
	Hooks []controllers.VersionedID `json:"hooks,omitempty"`
	// Changes has one entry for each object: the objects of the build in order, then the objects
	// that are no longer in the build.
	Changes []Change `json:"changes"`
	// Warnings concern the owner, such as a suspended Kustomization.
	Warnings []string `json:"warnings,omitempty"`
	// Suspended reports whether the owner is suspended.
	Suspended bool `json:"suspended,omitempty"`
	// Withheld is set if a suspended Kustomization prevents the change of the owner.
	Withheld *Withholding `json:"withheld,omitempty"`
	// Dangers concern the owner.
	Dangers []Danger `json:"dangers,omitempty"`
	// NotCompared is set if some or all objects of the owner could not be compared.
	NotCompared *Omission `json:"notCompared,omitempty"`
	// Builds reports whether two builds were compared, without a cluster.
	Builds bool `json:"-"`
	// Concealed replaces the names in the result that are derived from secret values. A comparison with a cluster sets it,
	// because it requires the names until it ends. ConcealAll applies it.
	Concealed *Concealment `json:"-"`
}

// Withholding is a change of an owner that is not applied, because the Kustomization that defines
// it is suspended.
type Withholding struct {
	// By is the suspended Kustomization that applies the owner, directly or indirectly.
	By controllers.VersionedID `json:"by"`
	// Action is the action that is not performed: the owner is not created, changed or pruned.
	Action Action `json:"action"`
}

// Omission describes why the objects of an owner were not compared.
type Omission struct {
	Reason string `json:"reason"`
	// Affected reports whether the objects may change. It is false if neither the definition of the
	// owner nor the definition of its source changes.
	Affected bool `json:"affected"`
}

// Count returns the number of objects with an action.
func (r *Result) Count(a Action) int {
	n := 0
	for _, c := range r.Changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

// Each returns the changes of results, each with its result.
func Each(results []*Result) iter.Seq2[*Result, *Change] {
	return func(yield func(*Result, *Change) bool) {
		for _, r := range results {
			for i := range r.Changes {
				if !yield(r, &r.Changes[i]) {
					return
				}
			}
		}
	}
}

// Orphans reports whether an object is removed from the source and remains on the cluster.
func (r *Result) Orphans() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Orphaned })
}

// Different reports whether any object changes, or may change but was not compared.
func (r *Result) Different() bool {
	if r.NotCompared != nil && r.NotCompared.Affected {
		return true
	}
	for _, c := range r.Changes {
		if c.Different() {
			return true
		}
	}
	return false
}

// NewResult returns the result for an owner, without changes.
func NewResult(owner *unstructured.Unstructured) *Result {
	folder, _, _ := unstructured.NestedString(owner.Object, "spec", "path")
	ref := controllers.VersionedIDOf(owner.Object)
	kind, _ := ref.Flux()
	return &Result{Owner: ref, Path: strings.TrimPrefix(path.Clean("/"+folder), "/"), Suspended: kind.Suspension.Is(owner.Object)}
}

// Owners returns the Kustomizations and HelmReleases that are pruned. Their finalizers delete or
// keep the objects that they have applied.
func (r *Result) Owners() []controllers.VersionedID {
	var found []controllers.VersionedID
	for _, c := range r.Changes {
		if k, _ := c.Object.Flux(); c.Action == Pruned && k.Applies() {
			found = append(found, c.Object)
		}
	}
	return found
}

// Step is the operation of helm-controller on a release.
type Step string

// Operations on a release. Keep does not replace the deployed revision: the controller only
// corrects drift, if at all.
const (
	Install   Step = "install"
	Upgrade   Step = "upgrade"
	Reinstall Step = "reinstall"
	Keep      Step = "keep"
)
