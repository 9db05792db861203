// Package validate checks what a command line gives about one object, and
// collects what is wrong with it.
package validate

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/input"
)

// Input reads what a command line gives about one object. It collects what is
// wrong with it, so that all of it is told at once.
type Input struct {
	App             *app.App
	Cmd             *cobra.Command
	Name, Namespace string
	Problems        []error
	stdinFor        string
}

// New checks the name and the namespace.
func New(a *app.App, cmd *cobra.Command, args []string) Input {
	c := Input{App: a, Cmd: cmd}
	switch {
	case len(args) == 0:
		c.Check(clierr.WithHint(cmd.CommandPath()+" NAME …", "name is required"))
	case len(args) > 1:
		c.Check(fmt.Errorf("one name is expected, not %d: %q", len(args), args))
	default:
		c.Name = args[0]
		c.Check(input.Name(c.Name))
	}
	var err error
	c.Namespace, err = a.Namespace(cmd)
	c.Check(err)
	if err == nil {
		c.ObjectName("namespace", c.Namespace)
	}
	return c
}

// Check records a problem; nil is none.
func (c *Input) Check(err error) {
	if err != nil {
		c.Problems = append(c.Problems, err)
	}
}

// Err is the end of a command whose input is wrong: every problem is told.
func (c *Input) Err() error {
	if len(c.Problems) <= 1 {
		return errors.Join(c.Problems...)
	}
	for _, err := range c.Problems {
		c.App.Report(err)
	}
	return clierr.ErrReported
}

// Require says that a flag is required.
func (c *Input) Require(flag, value string) {
	if value == "" {
		c.Check(clierr.WithHint(fmt.Sprintf("give it with --%s=…; '%s --help' has examples", flag, c.Cmd.CommandPath()), "%s is required", flag))
	}
}

// CheckFlag puts the flag before a problem with its value.
func (c *Input) CheckFlag(flag string, err error) {
	if err != nil {
		c.Check(fmt.Errorf("--%s: %w", flag, err))
	}
}

// ObjectName checks the name of an object that is referred to.
func (c *Input) ObjectName(flag, value string) {
	if value != "" {
		c.CheckFlag(flag, input.ObjectName(value))
	}
}

// ObjectNames checks several names, by their flags.
func (c *Input) ObjectNames(names map[string]string) {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		c.ObjectName(flag, names[flag])
	}
}

// OneOf checks a word where the flag, unlike a choice, may be empty.
func (c *Input) OneOf(flag, value string, allowed []string) {
	if value != "" && !slices.Contains(allowed, value) {
		c.Check(fmt.Errorf("--%s: %q has to be one of %s", flag, value, strings.Join(allowed, ", ")))
	}
}

// Given are those of the flags that were given.
func (c *Input) Given(flags ...string) []string {
	var given []string
	for _, name := range flags {
		if f := c.Cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != "" && f.Value.String() != "false" {
			given = append(given, "--"+name)
		}
	}
	return given
}

// Exclusive refuses more than one of the flags.
func (c *Input) Exclusive(why string, flags ...string) {
	if given := c.Given(flags...); len(given) > 1 {
		last := len(given) - 1
		c.Check(fmt.Errorf("%s and %s cannot be given together: %s", strings.Join(given[:last], ", "), given[last], why))
	}
}

// Excludes refuses flags beside another that makes them meaningless.
func (c *Input) Excludes(other, why string, flags ...string) {
	if given := c.Given(flags...); len(given) > 0 && len(c.Given(other)) > 0 {
		c.Check(fmt.Errorf("--%s and %s cannot be given together: %s", other, strings.Join(given, ", "), why))
	}
}

// Needs refuses flags that have no meaning without another.
func (c *Input) Needs(other string, flags ...string) {
	if given := c.Given(flags...); len(given) > 0 && len(c.Given(other)) == 0 {
		c.Check(fmt.Errorf("%s needs --%s", strings.Join(given, ", "), other))
	}
}

// URL reads a required address, nil where it is wrong.
func (c *Input) URL(flag, value string, schemes ...string) *url.URL {
	c.Require(flag, value)
	if value == "" {
		return nil
	}
	u, err := input.URL(value, schemes...)
	if err != nil {
		c.Check(fmt.Errorf("--%s: %w", flag, err))
		return nil
	}
	return u
}

// Endpoint checks a host with an optional port.
func (c *Input) Endpoint(flag, value string) {
	if value == "" {
		return
	}
	if u, err := url.Parse("//" + value); err != nil || u.Host != value || u.Hostname() == "" {
		c.Check(fmt.Errorf("--%s: %q has to be a host and, if need be, a port, without a scheme", flag, value))
	}
}
