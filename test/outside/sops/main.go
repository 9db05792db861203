// Command sops encrypts a manifest in the format of SOPS for a new age key, which it
// writes to a file. It encrypts the values of data and stringData and adds the
// message authentication code. It supports only what the tests need.
//
//	sops KEYFILE < secret.yaml > secret.enc.yaml
package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v3"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sops:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: sops KEYFILE < secret.yaml > secret.enc.yaml")
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[0], []byte(key.String()+"\n"), 0o600); err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.NewDecoder(in).Decode(&document); err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	if err := encrypt(&document, key.Recipient(), time.Now()); err != nil {
		return err
	}
	return yaml.NewEncoder(out).Encode(&document)
}

// envelope encrypts the values of one document.
type envelope struct {
	block cipher.AEAD
	// sum hashes all values in the order of the document.
	sum hash.Hash
}

// metadata is the field that SOPS adds to a document.
type metadata struct {
	Age          []recipient `yaml:"age"`
	LastModified string      `yaml:"lastmodified"`
	MAC          string      `yaml:"mac"`
	Regex        string      `yaml:"encrypted_regex"`
	Version      string      `yaml:"version"`
}

type recipient struct {
	Recipient string `yaml:"recipient"`
	Enc       string `yaml:"enc"`
}

func encrypt(document *yaml.Node, to *age.X25519Recipient, now time.Time) error {
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return errors.New("the manifest is not an object")
	}
	dataKey := make([]byte, 32)
	if _, err := rand.Read(dataKey); err != nil {
		return err
	}
	block, err := aes.NewCipher(dataKey)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCMWithNonceSize(block, 32)
	if err != nil {
		return err
	}
	e := envelope{aead, sha512.New()}
	root := document.Content[0]
	if err := e.values(root, "", false); err != nil {
		return err
	}
	sealed, err := seal(dataKey, to)
	if err != nil {
		return err
	}
	m := metadata{
		Age: []recipient{{to.String(), sealed}}, LastModified: now.UTC().Format(time.RFC3339),
		Regex: "^(data|stringData)$", Version: "3.10.2",
	}
	if m.MAC, err = e.value(fmt.Sprintf("%X", e.sum.Sum(nil)), m.LastModified); err != nil {
		return err
	}
	var below yaml.Node
	if err := below.Encode(m); err != nil {
		return err
	}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "sops"}, &below)
	return nil
}

// values encrypts the values of data and stringData, and hashes all values.
func (e envelope) values(n *yaml.Node, path string, secret bool) error {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if err := e.values(n.Content[i+1], path+key+":", secret || key == "data" || key == "stringData"); err != nil {
				return err
			}
		}
		return nil
	case yaml.ScalarNode:
		if n.Tag != "!!str" {
			return fmt.Errorf("%s%s is not a string: only strings are supported", path, n.Value)
		}
		e.sum.Write([]byte(n.Value)) // never returns an error
		if !secret {
			return nil
		}
		text, err := e.value(n.Value, path)
		n.Value, n.Style = text, 0
		return err
	default:
		return fmt.Errorf("%s is a list: only strings are supported", path)
	}
}

// value encrypts one string, with its path as additional data.
func (e envelope) value(plain, along string) (string, error) {
	iv := make([]byte, e.block.NonceSize())
	if _, err := rand.Read(iv); err != nil {
		return "", err
	}
	sealed := e.block.Seal(nil, iv, []byte(plain), []byte(along))
	split := len(sealed) - e.block.Overhead()
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:str]", text(sealed[:split]), text(iv), text(sealed[split:])), nil
}

// seal encrypts the data key for one recipient.
func seal(key []byte, to age.Recipient) (string, error) {
	var text bytes.Buffer
	armored := armor.NewWriter(&text)
	w, err := age.Encrypt(armored, to)
	if err != nil {
		return "", err
	}
	_, err = w.Write(key)
	err = errors.Join(err, w.Close(), armored.Close())
	return text.String(), err
}
