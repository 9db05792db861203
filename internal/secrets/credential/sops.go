package credential

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
)

// AgeKeys returns the public keys for a text that contains one age key per line.
func AgeKeys(text []byte) ([]string, error) {
	if bytes.Contains(text, []byte("-----BEGIN AGE ENCRYPTED FILE-----")) {
		return nil, errors.New("the age key is encrypted: decrypt it with 'age --decrypt', since kustomize-controller does not support passphrases")
	}
	identities, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		// The error can contain the key.
		return nil, errors.New("no valid age keys: each line must begin with AGE-SECRET-KEY- or #")
	}
	var public []string
	for _, identity := range identities {
		switch key := identity.(type) {
		case *age.X25519Identity:
			public = append(public, key.Recipient().String())
		case *age.HybridIdentity:
			public = append(public, key.Recipient().String())
		}
	}
	return public, nil
}

// OpenPGPKeys returns the fingerprints of armored OpenPGP private keys without a passphrase.
func OpenPGPKeys(text []byte) ([]string, error) {
	ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("no valid OpenPGP key in ASCII armor: export it with 'gpg --export-secret-keys --armor'")
	}
	var fingerprints []string
	for _, entity := range ring {
		fingerprint := strings.ToUpper(fmt.Sprintf("%x", entity.PrimaryKey.Fingerprint))
		if entity.PrivateKey == nil {
			return nil, fmt.Errorf("OpenPGP key %s is a public key: export the private key with 'gpg --export-secret-keys --armor'", fingerprint)
		}
		encrypted := entity.PrivateKey.Encrypted
		for _, sub := range entity.Subkeys {
			encrypted = encrypted || sub.PrivateKey != nil && sub.PrivateKey.Encrypted
		}
		if encrypted {
			return nil, fmt.Errorf("OpenPGP key %s has a passphrase: remove it with 'gpg --edit-key', since kustomize-controller does not support passphrases", fingerprint)
		}
		fingerprints = append(fingerprints, fingerprint)
	}
	return fingerprints, nil
}
