package command

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is the value of a flag with a fixed set of values.
type Choice struct {
	Value   *string
	Allowed []string
}

func (c Choice) String() string {
	if c.Value == nil {
		return ""
	}
	return *c.Value
}

// Type implements pflag.Value. The usage of the flag lists the allowed values.
func (c Choice) Type() string { return "string" }

// Choices returns the allowed values.
func (c Choice) Choices() []string { return c.Allowed }

// Set returns an error for a value that is not allowed.
func (c Choice) Set(s string) error {
	if !slices.Contains(c.Allowed, s) {
		return fmt.Errorf("must be one of %s", strings.Join(c.Allowed, ", "))
	}
	*c.Value = s
	return nil
}
