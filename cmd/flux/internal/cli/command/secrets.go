package command

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/terminal/ui"
)

// SecretDisplay holds the flags --show-secrets and --mask-secrets. By default
// secret values are masked on a terminal only.
type SecretDisplay struct{ show, mask bool }

// Add adds the flags to fs.
func (d *SecretDisplay) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&d.show, "show-secrets", false, "print secret values even on a terminal")
	fs.BoolVar(&d.mask, "mask-secrets", false, "mask secret values even if standard output is not a terminal")
}

// Check returns an error if both flags are set.
func (d *SecretDisplay) Check() error {
	if d.show && d.mask {
		return errors.New("--show-secrets and --mask-secrets are mutually exclusive")
	}
	return nil
}

// Masks reports whether secret values are masked on out.
func (d *SecretDisplay) Masks(out any) bool { return d.mask || !d.show && ui.IsTerminal(out) }
