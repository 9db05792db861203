// Package sops decrypts documents that SOPS encrypted, in the helper process: the library of SOPS
// and its clients of key services would slow down the start of every command.
package sops

import (
	"context"
	"errors"

	"github.com/fluxkit/flux/internal/helper"
)

// Job is the job that decrypts documents, and the argument of its process.
const Job = "decrypt"

// ErrNoKey is returned if no available key decrypts a document.
var ErrNoKey = errors.New("no available key decrypts it")

// Keys are the contents of the Secret for decryption, under the names that kustomize-controller
// reads. The helper process adds the credentials in its environment.
type Keys struct {
	// Age are texts with age keys, one a line. Other lines are ignored.
	Age []string `json:"age,omitempty"`
	// PGP are OpenPGP private keys, armored.
	PGP []string `json:"pgp,omitempty"`
	// Vault is a token of HashiCorp Vault.
	Vault string `json:"vault,omitempty"`
	// AWS are static credentials in YAML.
	AWS []byte `json:"aws,omitempty"`
	// Azure are credentials of a service principal in YAML.
	Azure []byte `json:"azure,omitempty"`
	// GCP are credentials in JSON.
	GCP []byte `json:"gcp,omitempty"`
}

// Request is the input of Job.
type Request struct {
	Document []byte `json:"document"`
	// Format is json, yaml, dotenv, ini or binary.
	Format string `json:"format"`
	Keys   Keys   `json:"keys"`
}

// Result is the output of Job.
type Result struct {
	Clear []byte `json:"clear,omitempty"`
	// NoKey is set if no key decrypts the document.
	NoKey bool `json:"noKey,omitempty"`
	// Failures are the errors of key services.
	Failures []string `json:"failures,omitempty"`
}

// Decrypter decrypts documents.
type Decrypter struct {
	// Process runs Job.
	Process *helper.Process
	// Keys returns the available keys. It is called once.
	Keys func(context.Context) (Keys, error)
	// Warn receives the errors of key services for documents without another key. It may be nil.
	Warn func(failure string)

	read   bool
	keys   Keys
	failed error
}

// Decrypt returns a decrypted document. Like kustomize-controller it does not verify the MAC of
// the document, since the order of keys is lost; each value is authenticated with its path.
func (d *Decrypter) Decrypt(ctx context.Context, document []byte, format string) ([]byte, error) {
	if !d.read {
		d.read = true
		d.keys, d.failed = d.Keys(ctx)
	}
	if d.failed != nil {
		return nil, d.failed
	}
	var result Result
	call := helper.Call{Job: Job, Title: "decrypting a document", Input: Request{document, format, d.keys}}
	if err := d.Process.Do(ctx, call, &result); err != nil {
		return nil, err
	}
	if !result.NoKey {
		return result.Clear, nil
	}
	for _, failure := range result.Failures {
		if d.Warn != nil {
			d.Warn(failure)
		}
	}
	return nil, ErrNoKey
}
