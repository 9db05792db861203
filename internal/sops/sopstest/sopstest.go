// Package sopstest encrypts documents as SOPS does, for tests.
package sopstest

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
	"filippo.io/age/armor"
)

const keySize = 32

// Sealer encrypts for one age key.
type Sealer struct {
	// Identity is the age key that decrypts.
	Identity *age.X25519Identity
	key      []byte
}

// New makes a key.
func New() (*Sealer, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	s := &Sealer{identity, make([]byte, keySize)}
	_, err = rand.Read(s.key)
	return s, err
}

// Value encrypts a value of a type of SOPS (str, int, bool, …) that stands at
// a place, the names of the maps around it each with a colon behind.
func (s *Sealer) Value(typ, clear, place string) (string, error) {
	block, err := aes.NewCipher(s.key)
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
	sealed := gcm.Seal(nil, iv, []byte(clear), []byte(place))
	tag := len(sealed) - gcm.Overhead()
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", encode(sealed[:tag]), encode(iv), encode(sealed[tag:]), typ), nil
}

// DataKey is the key of the document, encrypted for the age key, in armour.
func (s *Sealer) DataKey() (string, error) {
	var b bytes.Buffer
	a := armor.NewWriter(&b)
	w, err := age.Encrypt(a, s.Identity.Recipient())
	if err != nil {
		return "", err
	}
	_, err = w.Write(s.key)
	err = errors.Join(err, w.Close(), a.Close())
	return b.String(), err
}

// YAML is a document of which some values are encrypted already, with what
// SOPS notes below it.
func (s *Sealer) YAML(body string) (string, error) {
	key, err := s.DataKey()
	if err != nil {
		return "", err
	}
	when := "2026-11-01T10:00:00Z"
	mac, err := s.Value("str", "not looked at", when)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%ssops:\n  age:\n  - recipient: %s\n    enc: |\n      %s\n  lastmodified: %q\n  mac: %s\n  encrypted_regex: ^(data|stringData)$\n  version: 3.9.0\n",
		body, s.Identity.Recipient(), strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n      "), when, mac), nil
}

// Secret is the manifest of a Secret with one encrypted value.
func (s *Sealer) Secret(name, key, value string) (string, error) {
	sealed, err := s.Value("str", value, "stringData:"+key+":")
	if err != nil {
		return "", err
	}
	return s.YAML(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\nstringData:\n  %s: %s\n", name, key, sealed))
}
