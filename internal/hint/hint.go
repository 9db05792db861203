// Package hint provides errors with hints, which are printed on the line after the
// message, commands that users can copy, and suggestions for misspelled words.
package hint

import "fmt"

// Error is an error with a hint.
type Error struct {
	Err error
	// Hint is the remedy.
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errorf formats an error and adds a hint.
func Errorf(hint, format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...), hint}
}
