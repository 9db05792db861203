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

// discreet removes secrets from an error: Helm quotes values.
func discreet(err error, secrets []string) error {
	text := err.Error()
	// The longest first, so that none is left over in part.
	longest := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longest {
		if len(secret) >= recognizable {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return &discreetError{err, text}
}
