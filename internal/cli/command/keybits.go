package command

import (
	"errors"
	"strconv"

	"github.com/fluxkit/flux/internal/sshkey"
)

// KeyBits is the value of a flag that is the size of an RSA key.
type KeyBits int

func (b *KeyBits) String() string { return strconv.Itoa(int(*b)) }

// Type is what help shows in place of the value.
func (b *KeyBits) Type() string { return "rsaKeyBits" }

// Set refuses sizes that are unsafe or unknown to servers.
func (b *KeyBits) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || !sshkey.ValidBits(n) {
		return errors.New("it has to be a multiple of 8 from 2048 to 16384")
	}
	*b = KeyBits(n)
	return nil
}
