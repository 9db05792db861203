package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/budget"
)

// SecretFlag is a secret value with flags to set it directly, from a file or from
// standard input. File and standard input keep it out of the process list.
type SecretFlag struct {
	name, value, file string
	stdin             bool
}

// NewSecretFlag returns a secret value with the flags --NAME, --NAME-file and --NAME-stdin.
func NewSecretFlag(name string) *SecretFlag { return &SecretFlag{name: name} }

// Add registers the flags. noun is the name of the value in help texts; more
// is appended to the help of --NAME.
func (s *SecretFlag) Add(fs *pflag.FlagSet, short, noun, more string) {
	fs.StringVarP(&s.value, s.name, short, "", noun+more+"; prefer --"+s.name+"-file or --"+s.name+"-stdin")
	fs.StringVar(&s.file, s.name+"-file", "", "path to a file with the "+noun)
	fs.BoolVar(&s.stdin, s.name+"-stdin", false, "read the "+noun+" from standard input")
}

// FlagNames returns the names of the flags.
func (s *SecretFlag) FlagNames() []string {
	return []string{s.name, s.name + "-file", s.name + "-stdin"}
}

// SecretGiven reports whether one of the flags of s is set.
func (c *Input) SecretGiven(s *SecretFlag) bool { return len(c.Given(s.FlagNames()...)) > 0 }

// Secret returns the value. Trailing line breaks of a file or standard input are removed.
func (c *Input) Secret(s *SecretFlag) string {
	c.Exclusive(s.FlagNames()...)
	source, flag := s.file, s.name+"-file"
	if s.stdin {
		source, flag = "-", s.name+"-stdin"
	}
	if source == "" {
		return s.value
	}
	text := strings.TrimRight(string(c.File(flag, source)), "\r\n")
	if text == "" && len(c.Problems) == 0 {
		c.Check(fmt.Errorf("--%s: input is empty", flag))
	}
	return text
}

// maxInput is the maximum size of a file or standard input in bytes.
const maxInput = 1 << 20

// File reads the file of a flag. "-" is standard input, which only one flag can use.
func (c *Input) File(flag, name string) []byte {
	return c.read(flag, name, maxInput, errors.New("input exceeds 1 MiB, the maximum size of a Secret"))
}

// LargeFile is File with a maximum size in bytes.
func (c *Input) LargeFile(flag, name string, most int64) []byte {
	what := name
	if name == "-" {
		what = "standard input"
	}
	return c.read(flag, name, most, errors.New(what+" exceeds "+budget.Size(most)))
}

func (c *Input) read(flag, name string, most int64, exceeded error) []byte {
	if name == "" {
		return nil
	}
	in := c.App.Stdin(c.Cmd.Context())
	if name == "-" {
		switch c.stdinFor {
		case "":
		case flag:
			c.CheckFlag(flag, errors.New("standard input can be read only once"))
			return nil
		default:
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
		defer func() { _ = f.Close() }() // opened read-only
		in = f
	}
	text, err := io.ReadAll(budget.Reader(in, most, exceeded))
	if err != nil {
		c.CheckFlag(flag, err)
		return nil
	}
	return text
}
