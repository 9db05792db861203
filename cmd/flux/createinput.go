package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/output"
)

// put sets a field by its dotted path, unless the value is empty: what is not
// given is left to the controllers' defaults.
func put(m map[string]any, path string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case bool:
		if !v {
			return
		}
	case time.Duration:
		if v == 0 {
			return
		}
		value = v.String()
	case []string:
		if len(v) == 0 {
			return
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		value = list
	case []any:
		if len(v) == 0 {
			return
		}
	}
	for {
		first, rest, nested := strings.Cut(path, ".")
		if !nested {
			m[path] = value
			return
		}
		below, ok := m[first].(map[string]any)
		if !ok {
			below = map[string]any{}
			m[first] = below
		}
		m, path = below, rest
	}
}

// refField is a field that refers to an object.
func refField(r input.Reference) map[string]any {
	m := map[string]any{}
	put(m, "kind", r.Kind)
	put(m, "name", r.Name)
	put(m, "namespace", r.Namespace)
	return m
}

// need says that a flag is required.
func (c *creation) need(flag, value string) {
	if value == "" {
		c.wrong(hinted(fmt.Sprintf("give it with --%s=…; '%s --help' has examples", flag, c.cmd.CommandPath()), "%s is required", flag))
	}
}

// flagged puts the flag before a problem with its value.
func (c *creation) flagged(flag string, err error) {
	if err != nil {
		c.wrong(fmt.Errorf("--%s: %w", flag, err))
	}
}

// objectName checks the name of an object that is referred to.
func (c *creation) objectName(flag, value string) {
	if value != "" {
		c.flagged(flag, input.ObjectName(value))
	}
}

// objectNames checks several names, by their flags.
func (c *creation) objectNames(names map[string]string) {
	for _, flag := range slices.Sorted(maps.Keys(names)) {
		c.objectName(flag, names[flag])
	}
}

// versions checks a range of versions.
func (c *creation) versions(flag, value string) {
	if value != "" {
		c.flagged(flag, input.Range(value))
	}
}

// positive checks a duration.
func (c *creation) positive(flags map[string]time.Duration) {
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if flags[flag] < 0 {
			c.wrong(fmt.Errorf("--%s has to be more than 0", flag))
		}
	}
}

// oneOf checks a word where the flag, unlike a choice, may be empty.
func (c *creation) oneOf(flag, value string, allowed []string) {
	if value != "" && !slices.Contains(allowed, value) {
		c.wrong(fmt.Errorf("--%s: %q has to be one of %s", flag, value, strings.Join(allowed, ", ")))
	}
}

// refer reads a reference; an empty one is none.
func (c *creation) refer(flag, value string, rules input.Rules) input.Reference {
	if value == "" {
		return input.Reference{}
	}
	ref, err := rules.Parse(value)
	c.flagged(flag, err)
	return ref
}

// depends reads a list of dependencies.
func (c *creation) depends(list []string) []any {
	var refs []any
	for _, s := range list {
		ref, err := input.Dependency(s)
		c.flagged("depends-on", err)
		refs = append(refs, refField(ref))
	}
	return refs
}

// given are those of the flags that were given.
func (c *creation) given(flags ...string) []string {
	var given []string
	for _, name := range flags {
		if f := c.cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != "" && f.Value.String() != "false" {
			given = append(given, "--"+name)
		}
	}
	return given
}

// exclusive refuses more than one of the flags.
func (c *creation) exclusive(why string, flags ...string) {
	if given := c.given(flags...); len(given) > 1 {
		last := len(given) - 1
		c.wrong(fmt.Errorf("%s and %s cannot be given together: %s", strings.Join(given[:last], ", "), given[last], why))
	}
}

// excludes refuses flags beside another that makes them meaningless.
func (c *creation) excludes(other, why string, flags ...string) {
	if given := c.given(flags...); len(given) > 0 && len(c.given(other)) > 0 {
		c.wrong(fmt.Errorf("--%s and %s cannot be given together: %s", other, strings.Join(given, ", "), why))
	}
}

// needs refuses flags that have no meaning without another.
func (c *creation) needs(other string, flags ...string) {
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

func (s *secretFlag) add(fs *pflag.FlagSet, short, what string) {
	fs.StringVarP(&s.value, s.name, short, "", what+"; --"+s.name+"-file and --"+s.name+"-stdin keep it off the command line")
	fs.StringVar(&s.file, s.name+"-file", "", "a file with "+what)
	fs.BoolVar(&s.stdin, s.name+"-stdin", false, "read "+what+" from standard input")
}

// names are the flags by which the value can be given.
func (s *secretFlag) names() []string { return []string{s.name, s.name + "-file", s.name + "-stdin"} }

// asked tells whether it is given in any way.
func (c *creation) asked(s *secretFlag) bool { return len(c.given(s.names()...)) > 0 }

// secret reads the value. A line break at the end of a file or of standard
// input is not part of it.
func (c *creation) secret(s *secretFlag) string {
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
func (c *creation) file(flag, name string) []byte {
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

// knownFormat refuses formats that print no object.
func knownFormat(format string) error {
	if format == "wide" {
		return errors.New("output format \"wide\" is for tables: use one of json|yaml|name|jsonpath=…|go-template=…")
	}
	_, err := output.ObjectPrinter(format)
	return err
}

// address reads a required address, nil where it is wrong.
func (c *creation) address(flag, value string, schemes ...string) *url.URL {
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
func (c *creation) endpoint(flag, value string) {
	if value == "" {
		return
	}
	if u, err := url.Parse("//" + value); err != nil || u.Host != value || u.Hostname() == "" {
		c.wrong(fmt.Errorf("--%s: %q has to be a host and, if need be, a port, without a scheme", flag, value))
	}
}

// pattern checks a regular expression.
func (c *creation) pattern(flag, value string) {
	if _, err := regexp.Compile(value); err != nil {
		c.wrong(fmt.Errorf("--%s: %q is no regular expression: %w", flag, value, err))
	}
}

// digest checks the digest of an artifact.
func (c *creation) digest(flag, value string) {
	if value == "" {
		return
	}
	algorithm, sum, _ := strings.Cut(value, ":")
	length := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
	if length == 0 || len(sum) != length || strings.Trim(sum, "0123456789abcdef") != "" {
		c.wrong(fmt.Errorf("--%s: %q is no digest, such as sha256: with 64 hexadecimal digits", flag, value))
	}
}
