package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/input"
)

// intake reads what a command line gives about one object. It collects what is
// wrong with it, so that all of it is told at once.
type intake struct {
	app             *app
	cmd             *cobra.Command
	name, namespace string
	problems        []error
	stdinFor        string
}

func (a *app) newIntake(cmd *cobra.Command, args []string) intake {
	c := intake{app: a, cmd: cmd}
	switch {
	case len(args) == 0:
		c.wrong(hinted(cmd.CommandPath()+" NAME …", "name is required"))
	case len(args) > 1:
		c.wrong(fmt.Errorf("one name is expected, not %d: %q", len(args), args))
	default:
		c.name = args[0]
		c.wrong(input.Name(c.name))
	}
	var err error
	c.namespace, err = a.namespace(cmd)
	c.wrong(err)
	if err == nil {
		c.objectName("namespace", c.namespace)
	}
	return c
}

// wrong records a problem; nil is none.
func (c *intake) wrong(err error) {
	if err != nil {
		c.problems = append(c.problems, err)
	}
}

// verdict is the end of a command whose input is wrong: every problem is told.
func (c *intake) verdict() error {
	if len(c.problems) <= 1 {
		return errors.Join(c.problems...)
	}
	for _, err := range c.problems {
		c.app.report(err)
	}
	return errReported
}

// need says that a flag is required.
func (c *intake) need(flag, value string) {
	if value == "" {
		c.wrong(hinted(fmt.Sprintf("give it with --%s=…; '%s --help' has examples", flag, c.cmd.CommandPath()), "%s is required", flag))
	}
}

// flagged puts the flag before a problem with its value.
func (c *intake) flagged(flag string, err error) {
	if err != nil {
		c.wrong(fmt.Errorf("--%s: %w", flag, err))
	}
}

// objectName checks the name of an object that is referred to.
func (c *intake) objectName(flag, value string) {
	if value != "" {
		c.flagged(flag, input.ObjectName(value))
	}
}

// objectNames checks several names, by their flags.
func (c *intake) objectNames(names map[string]string) {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		c.objectName(flag, names[flag])
	}
}

// oneOf checks a word where the flag, unlike a choice, may be empty.
func (c *intake) oneOf(flag, value string, allowed []string) {
	if value != "" && !slices.Contains(allowed, value) {
		c.wrong(fmt.Errorf("--%s: %q has to be one of %s", flag, value, strings.Join(allowed, ", ")))
	}
}

// given are those of the flags that were given.
func (c *intake) given(flags ...string) []string {
	var given []string
	for _, name := range flags {
		if f := c.cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != "" && f.Value.String() != "false" {
			given = append(given, "--"+name)
		}
	}
	return given
}

// exclusive refuses more than one of the flags.
func (c *intake) exclusive(why string, flags ...string) {
	if given := c.given(flags...); len(given) > 1 {
		last := len(given) - 1
		c.wrong(fmt.Errorf("%s and %s cannot be given together: %s", strings.Join(given[:last], ", "), given[last], why))
	}
}

// excludes refuses flags beside another that makes them meaningless.
func (c *intake) excludes(other, why string, flags ...string) {
	if given := c.given(flags...); len(given) > 0 && len(c.given(other)) > 0 {
		c.wrong(fmt.Errorf("--%s and %s cannot be given together: %s", other, strings.Join(given, ", "), why))
	}
}

// needs refuses flags that have no meaning without another.
func (c *intake) needs(other string, flags ...string) {
	if given := c.given(flags...); len(given) > 0 && len(c.given(other)) == 0 {
		c.wrong(fmt.Errorf("%s needs --%s", strings.Join(given, ", "), other))
	}
}

// secretFlag is a value that is given on the command line, in a file, or on
// standard input, which keep it out of the list of processes.
type secretFlag struct {
	name, value, file string
	stdin             bool
}

func newSecretFlag(name string) *secretFlag { return &secretFlag{name: name} }

// add makes the flags. what names the value, more says what else there is to know of it.
func (s *secretFlag) add(fs *pflag.FlagSet, short, what, more string) {
	fs.StringVarP(&s.value, s.name, short, "", what+more+"; --"+s.name+"-file and --"+s.name+"-stdin keep it off the command line")
	fs.StringVar(&s.file, s.name+"-file", "", "a file with "+what)
	fs.BoolVar(&s.stdin, s.name+"-stdin", false, "read "+what+" from standard input")
}

// names are the flags by which the value can be given.
func (s *secretFlag) names() []string { return []string{s.name, s.name + "-file", s.name + "-stdin"} }

// asked tells whether it is given in any way.
func (c *intake) asked(s *secretFlag) bool { return len(c.given(s.names()...)) > 0 }

// secret reads the value. A line break at the end of a file or of standard
// input is not part of it.
func (c *intake) secret(s *secretFlag) string {
	c.exclusive("one of them is enough", s.names()...)
	source, flag := s.file, s.name+"-file"
	if s.stdin {
		source, flag = "-", s.name+"-stdin"
	}
	if source == "" {
		return s.value
	}
	text := strings.TrimRight(string(c.file(flag, source)), "\r\n")
	if text == "" && len(c.problems) == 0 {
		c.wrong(fmt.Errorf("--%s: there is nothing in it", flag))
	}
	return text
}

// mostInput bounds what is read from a file or standard input.
const mostInput = 1 << 20

// file reads a file that a flag names, "-" being standard input, which only
// one flag can have.
func (c *intake) file(flag, name string) []byte {
	if name == "" {
		return nil
	}
	in := c.app.in
	if name == "-" {
		if c.stdinFor != "" {
			c.wrong(fmt.Errorf("--%s and --%s cannot both be read from standard input", c.stdinFor, flag))
			return nil
		}
		c.stdinFor = flag
	} else {
		f, err := os.Open(name)
		if err != nil {
			c.flagged(flag, err)
			return nil
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, mostInput+1))
	if err == nil && len(text) > mostInput {
		err = errors.New("there is more than 1 MiB, which no Secret can hold")
	}
	c.flagged(flag, err)
	return text
}

// address reads a required address, nil where it is wrong.
func (c *intake) address(flag, value string, schemes ...string) *url.URL {
	c.need(flag, value)
	if value == "" {
		return nil
	}
	u, err := input.URL(value, schemes...)
	if err != nil {
		c.wrong(fmt.Errorf("--%s: %w", flag, err))
		return nil
	}
	return u
}

// endpoint checks a host with an optional port.
func (c *intake) endpoint(flag, value string) {
	if value == "" {
		return
	}
	if u, err := url.Parse("//" + value); err != nil || u.Host != value || u.Hostname() == "" {
		c.wrong(fmt.Errorf("--%s: %q has to be a host and, if need be, a port, without a scheme", flag, value))
	}
}
