package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/ui"
)

// secretDisplay are the flags that choose whether secret values are printed:
// without one of them they are masked on a terminal only.
type secretDisplay struct{ show, mask bool }

func (d *secretDisplay) add(fs *pflag.FlagSet) {
	fs.BoolVar(&d.show, "show-secrets", false, "print secret values on a terminal, too")
	fs.BoolVar(&d.mask, "mask-secrets", false, "mask secret values where standard output is not a terminal, too")
}

func (d *secretDisplay) check() error {
	if d.show && d.mask {
		return errors.New("--show-secrets and --mask-secrets are mutually exclusive")
	}
	return nil
}

// masks reports whether secret values are to be masked on standard output.
func (d *secretDisplay) masks(out any) bool { return d.mask || !d.show && ui.IsTerminal(out) }
