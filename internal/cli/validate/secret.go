package validate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// SecretFlag is a value that is given on the command line, in a file, or on
// standard input, which keep it out of the list of processes.
type SecretFlag struct {
	name, value, file string
	stdin             bool
}

// NewSecretFlag returns the flags for a secret value.
func NewSecretFlag(name string) *SecretFlag { return &SecretFlag{name: name} }

// Add makes the flags. what names the value, more says what else there is to know of it.
func (s *SecretFlag) Add(fs *pflag.FlagSet, short, what, more string) {
	fs.StringVarP(&s.value, s.name, short, "", what+more+"; --"+s.name+"-file and --"+s.name+"-stdin keep it off the command line")
	fs.StringVar(&s.file, s.name+"-file", "", "a file with "+what)
	fs.BoolVar(&s.stdin, s.name+"-stdin", false, "read "+what+" from standard input")
}

// Names are the flags by which the value can be given.
func (s *SecretFlag) Names() []string { return []string{s.name, s.name + "-file", s.name + "-stdin"} }

// Asked tells whether it is given in any way.
func (c *Input) Asked(s *SecretFlag) bool { return len(c.Given(s.Names()...)) > 0 }

// Secret reads the value. A line break at the end of a file or of standard
// input is not part of it.
func (c *Input) Secret(s *SecretFlag) string {
	c.Exclusive("one of them is enough", s.Names()...)
	source, flag := s.file, s.name+"-file"
	if s.stdin {
		source, flag = "-", s.name+"-stdin"
	}
	if source == "" {
		return s.value
	}
	text := strings.TrimRight(string(c.File(flag, source)), "\r\n")
	if text == "" && len(c.Problems) == 0 {
		c.Check(fmt.Errorf("--%s: there is nothing in it", flag))
	}
	return text
}

// mostInput bounds what is read from a file or standard input.
const mostInput = 1 << 20

// File reads a file that a flag names, "-" being standard input, which only
// one flag can have.
func (c *Input) File(flag, name string) []byte {
	if name == "" {
		return nil
	}
	in := c.App.In
	if name == "-" {
		if c.stdinFor != "" {
			c.Check(fmt.Errorf("--%s and --%s cannot both be read from standard input", c.stdinFor, flag))
			return nil
		}
		c.stdinFor = flag
	} else {
		f, err := os.Open(name)
		if err != nil {
			c.CheckFlag(flag, err)
			return nil
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, mostInput+1))
	if err == nil && len(text) > mostInput {
		err = errors.New("there is more than 1 MiB, which no Secret can hold")
	}
	c.CheckFlag(flag, err)
	return text
}
