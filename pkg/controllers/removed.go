package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// Removed is a field of the spec that newer versions of a kind do not have.
type Removed struct {
	// Field is the name of the field, In the first version without it.
	Field, In string
	// Moved is the field of the spec that takes the value, for example
	// "eventMetadata.summary". It must not be set as well.
	Moved string
	// Instead is the field that replaces it with another kind of value. If it is
	// set, the removed field has no effect. Remedy is how to set it. A field
	// with neither Moved nor Instead never has an effect.
	Instead, Remedy string
}

// Removal is a removed field of an object.
type Removal struct {
	Removed
	// Blocked is the remedy if the field cannot be converted, and "" if Moved has
	// its meaning or it has no effect.
	Blocked string
}

// Outcome describes what a conversion does with the field.
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

// RemovedBetween returns the fields that a version has and a newer one does not.
func (k Kind) RemovedBetween(from, to string) []Removed {
	return slices.DeleteFunc(slices.Clone(k.Removed), func(r Removed) bool {
		return version.CompareKubeAwareVersionStrings(from, r.In) >= 0 || version.CompareKubeAwareVersionStrings(to, r.In) < 0
	})
}

// Of returns how the field of an object is converted, if the object has it.
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

// Parent returns the object field of Moved and the name of the field in it.
func (r Removed) Parent() (parent, name string) {
	parent, name, _ = strings.Cut(r.Moved, ".")
	return parent, name
}
