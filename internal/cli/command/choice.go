package command

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is the value of a flag that is one of several words.
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

// Type is what help shows in place of the value.
func (c Choice) Type() string { return strings.Join(c.Allowed, "|") }

// Set refuses everything but the words.
func (c Choice) Set(s string) error {
	if !slices.Contains(c.Allowed, s) {
		return fmt.Errorf("it has to be one of %s", strings.Join(c.Allowed, ", "))
	}
	*c.Value = s
	return nil
}
