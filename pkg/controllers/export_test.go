package controllers

import "slices"

// DurationFields returns the paths of all durations in specs.
func DurationFields() []string { return slices.Clone(durationFields) }

// SecretFields returns the paths of all references to Secrets, lists with a
// trailing "[]".
func SecretFields() []string {
	fields := slices.Clone(secretFields)
	for _, f := range valueFields {
		fields = append(fields, f+"[]")
	}
	return fields
}
