// Package input checks the name, namespace and flags of one object and collects
// all problems, so that a command reports them together.
package input

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/internal/hint"
)

// Input is the command line of one object and the problems found in it.
type Input struct {
	App             *app.App
	Cmd             *cobra.Command
	Name, Namespace string
	Problems        []error
	// Partial is set if required flags may be missing.
	Partial  bool
	stdinFor string
}

// New returns an Input with the validated name and namespace of the command line.
func New(a *app.App, cmd *cobra.Command, args []string) Input {
	c := Input{App: a, Cmd: cmd}
	switch {
	case len(args) == 0:
		c.Check(hint.Errorf(cmd.CommandPath()+" NAME …", "name is required"))
	case len(args) > 1:
		c.Check(fmt.Errorf("accepts 1 name, received %d: %q", len(args), args))
	default:
		c.Name = args[0]
		c.Check(syntax.Name(c.Name))
	}
	c.readNamespace()
	return c
}

// NewUnnamed returns an Input with the validated namespace of the command line.
func NewUnnamed(a *app.App, cmd *cobra.Command) Input {
	c := Input{App: a, Cmd: cmd}
	c.readNamespace()
	return c
}

func (c *Input) readNamespace() {
	var err error
	c.Namespace, err = c.App.Namespace(c.Cmd)
	c.Check(err)
	if err == nil {
		c.ObjectName("namespace", c.Namespace)
	}
}

// Check records a problem, unless err is nil.
func (c *Input) Check(err error) {
	if err != nil {
		c.Problems = append(c.Problems, err)
	}
}

// Err reports several problems and returns clierr.ErrReported, or returns a single problem, or nil.
func (c *Input) Err() error {
	if len(c.Problems) <= 1 {
		return errors.Join(c.Problems...)
	}
	for _, err := range c.Problems {
		c.App.Report(err)
	}
	return clierr.ErrReported
}

// Require records a problem if the value of a required flag is empty, unless c is partial.
func (c *Input) Require(flag, value string) {
	if value == "" && !c.Partial {
		c.Check(hint.Errorf(fmt.Sprintf("set it with --%s=…; see the examples in '%s --help'", flag, c.Cmd.CommandPath()), "%s is required", flag))
	}
}

// CheckFlag records a problem with the value of a flag, unless err is nil.
func (c *Input) CheckFlag(flag string, err error) {
	if err != nil {
		c.Check(fmt.Errorf("--%s: %w", flag, err))
	}
}

// ObjectName checks that a flag is empty or the name of an object.
func (c *Input) ObjectName(flag, value string) {
	if value != "" {
		c.CheckFlag(flag, syntax.ObjectName(value))
	}
}

// OneOf checks that a flag is empty or has an allowed value.
func (c *Input) OneOf(flag, value string, allowed []string) {
	if value != "" && !slices.Contains(allowed, value) {
		c.Check(fmt.Errorf("--%s: invalid value %q: must be one of %s", flag, value, strings.Join(allowed, ", ")))
	}
}

// Given returns the flags that are set, with leading dashes.
func (c *Input) Given(flags ...string) []string {
	var given []string
	for _, name := range flags {
		if f := c.Cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != "" && f.Value.String() != "false" {
			given = append(given, "--"+name)
		}
	}
	return given
}

// Exclusive records a problem if more than one of the flags is set.
func (c *Input) Exclusive(flags ...string) {
	if given := c.Given(flags...); len(given) > 1 {
		last := len(given) - 1
		c.Check(fmt.Errorf("%s and %s are mutually exclusive", strings.Join(given[:last], ", "), given[last]))
	}
}

// Excludes records a problem if any of the flags is set together with other; why
// is the reason.
func (c *Input) Excludes(other, why string, flags ...string) {
	if given := c.Given(flags...); len(given) > 0 && len(c.Given(other)) > 0 {
		c.Check(fmt.Errorf("--%s and %s are mutually exclusive: %s", other, strings.Join(given, ", "), why))
	}
}

// Needs records a problem if any of the flags is set without other.
func (c *Input) Needs(other string, flags ...string) {
	if given := c.Given(flags...); len(given) > 0 && len(c.Given(other)) == 0 {
		c.Check(fmt.Errorf("%s requires --%s", strings.Join(given, ", "), other))
	}
}

// URL parses the value of a required flag and returns nil if it is invalid.
func (c *Input) URL(flag, value string, schemes ...string) *url.URL {
	c.Require(flag, value)
	if value == "" {
		return nil
	}
	u, err := syntax.URL(value, schemes...)
	if err != nil {
		c.Check(fmt.Errorf("--%s: %w", flag, err))
		return nil
	}
	return u
}

// Endpoint checks that a flag is empty or a host with an optional port.
func (c *Input) Endpoint(flag, value string) {
	if value == "" {
		return
	}
	if u, err := url.Parse("//" + value); err != nil || u.Host != value || u.Hostname() == "" {
		c.Check(fmt.Errorf("--%s: invalid endpoint %q: must be HOST or HOST:PORT without a scheme", flag, value))
	}
}
