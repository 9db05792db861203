package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/terminal/output"
)

// FlagError returns the error for an invalid flag value. Unknown output formats have the same
// message as in commands that validate the format themselves.
func FlagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Name == "output" {
		switch value := invalid.GetFlag().Value.(type) {
		case Choice:
			return output.UnknownFormat(invalid.GetValue(), value.Allowed...)
		case Outputs:
			if format, _, _ := strings.Cut(invalid.GetValue(), "="); !slices.Contains(value.Allowed, format) {
				return output.UnknownFormat(format, value.Allowed...)
			}
		}
	}
	if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" {
		return hint.Errorf("use a duration such as 30s, 5m or 24h", "%w", err)
	}
	return err
}
