package build

import (
	"slices"
	"strings"
)

// discreetError is an error without secret values.
type discreetError struct {
	error
	text string
}

func (e *discreetError) Error() string { return e.text }
func (e *discreetError) Unwrap() error { return e.error }

// Recognizable is the minimum length of a secret that is searched for within other values.
const Recognizable = 6

// WithoutValues removes secrets from an error, since errors of Helm quote values.
func WithoutValues(err error, secrets []string) error {
	text := err.Error()
	// Longer secrets are replaced first, so that no part of one remains if it contains another.
	longest := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longest {
		if len(secret) >= Recognizable {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return &discreetError{err, text}
}
