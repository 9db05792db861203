package signature

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
)

// ErrPassphrase is returned for an encrypted OpenPGP key when the passphrase is
// missing or wrong.
var ErrPassphrase = errors.New("the OpenPGP key is encrypted and the passphrase is missing or wrong")

// OpenPGP returns a Signer with a private key from an armored or binary key
// ring: the key with the given ID, or the first key if id is "".
func OpenPGP(ring []byte, id, passphrase string) (Signer, error) {
	entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(ring))
	if err != nil {
		entities, err = openpgp.ReadKeyRing(bytes.NewReader(ring))
	}
	if err != nil {
		return nil, fmt.Errorf("invalid OpenPGP key ring: %w", err)
	}
	entity, err := choose(entities, id)
	if err != nil {
		return nil, err
	}
	if entity.PrivateKey.Encrypted {
		if err := entity.DecryptPrivateKeys([]byte(passphrase)); err != nil {
			return nil, ErrPassphrase
		}
	}
	return func(commit []byte) (string, error) {
		var signature bytes.Buffer
		if err := openpgp.ArmoredDetachSign(&signature, entity, bytes.NewReader(commit), nil); err != nil {
			return "", fmt.Errorf("signing with the OpenPGP key: %w", err)
		}
		return signature.String() + "\n", nil
	}, nil
}

func choose(entities openpgp.EntityList, id string) (*openpgp.Entity, error) {
	want := strings.ToUpper(strings.TrimPrefix(strings.ReplaceAll(id, " ", ""), "0x"))
	for _, e := range entities {
		if e.PrivateKey == nil {
			continue
		}
		fingerprint := strings.ToUpper(fmt.Sprintf("%x", e.PrimaryKey.Fingerprint))
		if want == "" || strings.HasSuffix(fingerprint, want) {
			return e, nil
		}
	}
	if want == "" {
		return nil, errors.New("no private key in the OpenPGP key ring")
	}
	return nil, fmt.Errorf("no private key with ID %q in the OpenPGP key ring", id)
}
