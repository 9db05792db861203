package command

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/ui"
)

// SecretDisplay are the flags that choose whether secret values are printed:
// without one of them they are masked on a terminal only.
type SecretDisplay struct{ show, mask bool }

// Add adds the flags.
func (d *SecretDisplay) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&d.show, "show-secrets", false, "print secret values on a terminal, too")
	fs.BoolVar(&d.mask, "mask-secrets", false, "mask secret values where standard output is not a terminal, too")
}

// Check refuses flags that contradict each other.
func (d *SecretDisplay) Check() error {
	if d.show && d.mask {
		return errors.New("--show-secrets and --mask-secrets are mutually exclusive")
	}
	return nil
}

// Masks reports whether secret values are to be masked on standard output.
func (d *SecretDisplay) Masks(out any) bool { return d.mask || !d.show && ui.IsTerminal(out) }
