package clierr

import (
	"github.com/spf13/cobra"
)

// UsageError is returned for a command line without required arguments. The
// usage of the command is printed before the message.
type UsageError struct {
	Cmd     *cobra.Command
	message string
}

func (e *UsageError) Error() string { return e.Cmd.CommandPath() + ": " + e.message }

// Usage returns a UsageError.
func Usage(cmd *cobra.Command, message string) error { return &UsageError{cmd, message} }
