package credentials

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/git/signature"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// Signing holds the flags for commit signing.
type Signing struct {
	ring, id, passphrase string
	sshFile, sshPassword string
	sshPassphrase        string
	// Reuse signs commits with the SSH key of the repository.
	Reuse bool
}

// Add registers the flags.
func (s *Signing) Add(fs *pflag.FlagSet) {
	fs.StringVar(&s.ring, "gpg-key-ring", "", "path to the OpenPGP key ring for commit signing")
	fs.StringVar(&s.id, "gpg-key-id", "", "ID of the OpenPGP key, if the key ring contains several")
	fs.StringVar(&s.passphrase, "gpg-passphrase", "", "passphrase of the OpenPGP key")
	fs.StringVar(&s.sshFile, "ssh-signing-key-file", "", "path to the SSH private key for commit signing")
	fs.StringVar(&s.sshPassword, "ssh-signing-password", "", "passphrase of the SSH signing key")
	fs.StringVar(&s.sshPassphrase, "ssh-signing-passphrase", "", "alias of --ssh-signing-password")
	fs.BoolVar(&s.Reuse, "ssh-signing-reuse-private-key", false, "sign commits with --private-key-file")
	_ = fs.MarkHidden("ssh-signing-passphrase")
}

// Signer returns the commit signer, or nil if commits are not signed.
func (s *Signing) Signer(privateKey []byte, password string) (signature.Signer, error) {
	keys := 0
	for _, set := range []bool{s.ring != "", s.sshFile != "", s.Reuse} {
		if set {
			keys++
		}
	}
	switch {
	case keys == 0 && (s.id != "" || s.passphrase != ""):
		return nil, errors.New("--gpg-key-id and --gpg-passphrase require --gpg-key-ring")
	case keys == 0 && s.sshPassword+s.sshPassphrase != "":
		return nil, errors.New("--ssh-signing-password requires --ssh-signing-key-file")
	case keys == 0:
		return nil, nil // commits are not signed
	case keys > 1:
		return nil, errors.New("--gpg-key-ring, --ssh-signing-key-file and --ssh-signing-reuse-private-key are mutually exclusive")
	case s.ring != "":
		ring, err := File("gpg-key-ring", s.ring)
		if err != nil {
			return nil, err
		}
		return signature.OpenPGP(ring, s.id, s.passphrase)
	case s.Reuse && privateKey == nil:
		return nil, errors.New("--ssh-signing-reuse-private-key requires --private-key-file")
	case s.sshFile != "":
		var err error
		if privateKey, err = File("ssh-signing-key-file", s.sshFile); err != nil {
			return nil, err
		}
		password = s.sshPassword + s.sshPassphrase
	}
	key, err := sshkey.Signer(privateKey, password)
	if err != nil {
		return nil, fmt.Errorf("reading the SSH signing key: %w", err)
	}
	return signature.SSH(key), nil
}
