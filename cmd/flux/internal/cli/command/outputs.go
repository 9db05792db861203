package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Output is a format and the output file, "" for standard output.
type Output struct{ Format, File string }

// Outputs is the value of a repeatable flag for formats, each with an optional file.
type Outputs struct {
	List    *[]Output
	Allowed []string
}

// String returns the value of the flag.
func (o Outputs) String() string {
	if o.List == nil {
		return ""
	}
	var all []string
	for _, output := range *o.List {
		all = append(all, strings.TrimSuffix(output.Format+"="+output.File, "="))
	}
	return strings.Join(all, ",")
}

// Type implements pflag.Value.
func (Outputs) Type() string { return "stringArray" }

// Choices returns the allowed formats.
func (o Outputs) Choices() []string { return o.Allowed }

// Set adds a format and its file.
func (o Outputs) Set(value string) error {
	format, file, toFile := strings.Cut(value, "=")
	if !slices.Contains(o.Allowed, format) {
		return fmt.Errorf("must be one of %s", strings.Join(o.Allowed, ", "))
	}
	if toFile && file == "" {
		return fmt.Errorf("no file in %q: use %s=FILE", value, format)
	}
	for _, output := range *o.List {
		if output.File == file {
			if toFile {
				return fmt.Errorf("two formats for the file %s", file)
			}
			return errors.New("two formats for standard output: use FORMAT=FILE for one of them")
		}
	}
	*o.List = append(*o.List, Output{format, file})
	return nil
}
