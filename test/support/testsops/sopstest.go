// Package testsops encrypts documents in the SOPS format, for tests that do not link the SOPS
// library.
package testsops

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	agearmor "filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
)

const keySize = 32

// Sealer encrypts documents with one data key.
type Sealer struct {
	// Identity is the age key that decrypts the documents of New.
	Identity *age.X25519Identity
	// DataKey is the key of the values.
	DataKey []byte
	// recipients is the part of the metadata with the encrypted data key.
	recipients string
}

func newSealer() (*Sealer, error) {
	s := &Sealer{DataKey: make([]byte, keySize)}
	_, err := rand.Read(s.DataKey)
	return s, err
}

// New returns a Sealer for a new age key.
func New() (*Sealer, error) {
	s, err := newSealer()
	if err != nil {
		return nil, err
	}
	if s.Identity, err = age.GenerateX25519Identity(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	armored := agearmor.NewWriter(&b)
	w, err := age.Encrypt(armored, s.Identity.Recipient())
	if err != nil {
		return nil, err
	}
	_, err = w.Write(s.DataKey)
	s.recipients = fmt.Sprintf("  age:\n  - recipient: %s\n    enc: |\n", s.Identity.Recipient())
	err = errors.Join(err, w.Close(), armored.Close())
	s.recipients += indented(b.String())
	return s, err
}

// NewPGP returns a Sealer for a new OpenPGP key, and the armored private key.
func NewPGP() (s *Sealer, private string, err error) {
	if s, err = newSealer(); err != nil {
		return nil, "", err
	}
	entity, err := openpgp.NewEntity("flux", "", "flux@example.com", nil)
	if err != nil {
		return nil, "", err
	}
	var key, message bytes.Buffer
	keyWriter, err := armor.Encode(&key, openpgp.PrivateKeyType, nil)
	if err != nil {
		return nil, "", err
	}
	if err := errors.Join(entity.SerializePrivate(keyWriter, nil), keyWriter.Close()); err != nil {
		return nil, "", err
	}
	messageWriter, err := armor.Encode(&message, "PGP MESSAGE", nil)
	if err != nil {
		return nil, "", err
	}
	w, err := openpgp.Encrypt(messageWriter, []*openpgp.Entity{entity}, nil, &openpgp.FileHints{IsBinary: true}, nil)
	if err != nil {
		return nil, "", err
	}
	_, err = w.Write(s.DataKey)
	err = errors.Join(err, w.Close(), messageWriter.Close())
	s.recipients = fmt.Sprintf("  pgp:\n  - created_at: %q\n    fp: %X\n    enc: |\n%s", lastModified, entity.PrimaryKey.Fingerprint, indented(message.String()))
	return s, key.String(), err
}

// NewVault returns a Sealer for the key "team" of the transit engine of a Vault server, which must
// decrypt the ciphertext to DataKey.
func NewVault(address, ciphertext string) (*Sealer, error) {
	s, err := newSealer()
	if err != nil {
		return nil, err
	}
	s.recipients = fmt.Sprintf("  hc_vault:\n  - vault_address: %s\n    engine_path: transit\n    key_name: team\n    created_at: %q\n    enc: %s\n", address, lastModified, ciphertext)
	return s, nil
}

// indented returns an armored text as the value of enc.
func indented(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
}

// Value encrypts a value of a type of SOPS (str, int, bool, …). The path consists of the keys of
// the maps that contain the value, each followed by a colon.
func (s *Sealer) Value(typ, clear, path string) (string, error) {
	block, err := aes.NewCipher(s.DataKey)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, keySize)
	if err != nil {
		return "", err
	}
	iv := make([]byte, keySize)
	if _, err := rand.Read(iv); err != nil {
		return "", err
	}
	sealed := gcm.Seal(nil, iv, []byte(clear), []byte(path))
	tag := len(sealed) - gcm.Overhead()
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", encode(sealed[:tag]), encode(iv), encode(sealed[tag:]), typ), nil
}

// lastModified is the time in the metadata of all documents.
const lastModified = "2026-11-01T10:00:00Z"

// YAML returns a document with encrypted values, and adds the SOPS metadata.
func (s *Sealer) YAML(body string) (string, error) {
	mac, err := s.Value("str", "not verified", lastModified)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%ssops:\n%s  lastmodified: %q\n  mac: %s\n  encrypted_regex: ^(data|stringData)$\n  version: 3.9.0\n", body, s.recipients, lastModified, mac), nil
}

// Secret returns the manifest of a Secret with one encrypted value.
func (s *Sealer) Secret(name, key, value string) (string, error) {
	sealed, err := s.Value("str", value, "stringData:"+key+":")
	if err != nil {
		return "", err
	}
	return s.YAML(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\nstringData:\n  %s: %s\n", name, key, sealed))
}
