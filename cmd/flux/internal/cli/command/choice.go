package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
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

// Set returns an error for a value that is neither allowed nor the current one.
func (c Choice) Set(s string) error {
	if s != *c.Value && !slices.Contains(c.Allowed, s) {
		return fmt.Errorf("must be one of %s", strings.Join(c.Allowed, ", "))
	}
	*c.Value = s
	return nil
}

// AddOutput adds the flag --output to fs. The help text is usage followed by the formats.
func AddOutput(fs *pflag.FlagSet, format *string, usage string, formats ...string) {
	last := len(formats) - 1
	list := strings.Join(formats[:last], ", ")
	if last > 0 {
		list += " or "
	}
	fs.VarP(Choice{Value: format, Allowed: formats}, "output", "o", usage+": "+list+formats[last])
}
