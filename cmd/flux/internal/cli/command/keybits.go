package command

import (
	"errors"
	"strconv"

	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// KeyBits is the value of a flag with the size of an RSA key in bits.
type KeyBits int

func (b *KeyBits) String() string { return strconv.Itoa(int(*b)) }

// Type implements pflag.Value.
func (b *KeyBits) Type() string { return "rsaKeyBits" }

// Set returns an error for a size that is unsafe or not supported by SSH servers.
func (b *KeyBits) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || !sshkey.ValidBits(n) {
		return errors.New("must be a multiple of 8 from 2048 to 16384")
	}
	*b = KeyBits(n)
	return nil
}
