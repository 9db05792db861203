package clierr

import (
	"github.com/spf13/cobra"
)

// UsageError says that a command line lacks words that the command needs.
type UsageError struct {
	Cmd     *cobra.Command
	message string
}

func (e *UsageError) Error() string { return e.Cmd.CommandPath() + ": " + e.message }

// Usage returns the error that shows how a command is used.
func Usage(cmd *cobra.Command, message string) error { return &UsageError{cmd, message} }
