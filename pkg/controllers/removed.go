package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// Removed is a field of the spec that newer versions of a kind do not have.
type Removed struct {
	// Field is the name of the field. In is the first version without it.
	Field, In string
	// Moved is the field of the spec that replaces the field with the same value, for example
	// "eventMetadata.summary". The conversion requires that it is not set.
	Moved string
	// Instead is the field that replaces it with a different kind of value. If it is set, the
	// removed field has no effect. Remedy describes how to set it. A field with neither Moved nor
	// Instead never has an effect.
	Instead, Remedy string
}

// Removal is a removed field of an object.
type Removal struct {
	Removed
	// Blocked is the remedy if the field cannot be converted. It is "" if Moved replaces the field
	// or if the field has no effect.
	Blocked string
}

// Outcome describes the conversion of the field.
func (r Removal) Outcome() string {
	switch {
	case r.Blocked != "":
		return fmt.Sprintf("spec.%s does not exist in %s: %s", r.Field, r.In, r.Blocked)
	case r.Moved != "":
		return fmt.Sprintf("spec.%s moved to spec.%s", r.Field, r.Moved)
	default:
		return fmt.Sprintf("spec.%s removed: it has no effect", r.Field)
	}
}

// RemovedBetween returns the fields that exist in a version but not in a newer one.
func (k Kind) RemovedBetween(from, to string) []Removed {
	return slices.DeleteFunc(slices.Clone(k.Removed), func(r Removed) bool {
		return version.CompareKubeAwareVersionStrings(from, r.In) >= 0 || version.CompareKubeAwareVersionStrings(to, r.In) < 0
	})
}

// Of returns how the field of an object is converted, and false if the object does not have it.
func (r Removed) Of(o Object) (Removal, bool) {
	has := func(field string) bool {
		_, ok := Path{"spec." + field}.Lookup(o)
		return ok
	}
	if !has(r.Field) {
		return Removal{}, false
	}
	removal := Removal{Removed: r}
	switch {
	case r.Moved != "" && has(r.Moved):
		removal.Blocked = fmt.Sprintf("keep one of spec.%s and spec.%s", r.Field, r.Moved)
	case r.Instead != "" && !has(r.Instead):
		removal.Blocked = r.Remedy
	}
	return removal, true
}

// ByHand describes how to convert the field manually.
func (r Removed) ByHand() string {
	switch {
	case r.Moved != "":
		return fmt.Sprintf("move spec.%s to spec.%s", r.Field, r.Moved)
	case r.Instead != "":
		return fmt.Sprintf("if spec.%s is not set, %s; then remove spec.%s", r.Instead, r.Remedy, r.Field)
	default:
		return "remove spec." + r.Field
	}
}

// Parent returns the object field of Moved and the name of the field in it.
func (r Removed) Parent() (parent, name string) {
	parent, name, _ = strings.Cut(r.Moved, ".")
	return parent, name
}
