// Package sops decrypts documents that SOPS encrypted. It uses the helper process, since the
// library of SOPS and its clients of key services would slow down the start of every command.
package sops

import (
	"context"
	"errors"
	"strings"

	"github.com/fluxkit/flux/internal/helper"
)

// Job is the job that decrypts documents, and the argument of its process.
const Job helper.Call[Request, Response] = "decrypt"

// ErrNoKey is returned if no available key decrypts a document.
var ErrNoKey = errors.New("no available key can decrypt it")

// Keys holds the contents of the Secret for decryption, under the names that kustomize-controller
// reads. The helper process adds the credentials in its environment.
type Keys struct {
	// Age holds texts with age keys, one per line. Other lines are ignored.
	Age []string `json:"age,omitempty"`
	// PGP holds armored OpenPGP private keys.
	PGP []string `json:"pgp,omitempty"`
	// Vault is a token of HashiCorp Vault.
	Vault string `json:"vault,omitempty"`
	// AWS holds static credentials in YAML.
	AWS []byte `json:"aws,omitempty"`
	// Azure holds the credentials of a service principal in YAML.
	Azure []byte `json:"azure,omitempty"`
	// GCP holds credentials in JSON.
	GCP []byte `json:"gcp,omitempty"`
}

// Request is the input of Job.
type Request struct {
	Document []byte `json:"document"`
	// Format is json, yaml, dotenv, ini or binary.
	Format string `json:"format"`
	Keys   Keys   `json:"keys"`
}

// Response is the output of Job.
type Response struct {
	Clear []byte `json:"clear,omitempty"`
	// NoKey is set if no key decrypts the document.
	NoKey bool `json:"noKey,omitempty"`
	// Failures holds the errors of key services.
	Failures []string `json:"failures,omitempty"`
}

// Decrypter decrypts documents.
type Decrypter struct {
	// Process runs Job.
	Process *helper.Process
	// Keys returns the available keys. It is called once.
	Keys func(context.Context) (Keys, error)
	// Warn is called with the name of a document that no key decrypts and the error of a key. It
	// may be nil.
	Warn func(document, failure string)

	read   bool
	keys   Keys
	failed error
}

// Decrypt returns a decrypted document. The name of the document is for messages. Like
// kustomize-controller, it does not verify the MAC of the document, since the order of keys is
// lost. Each value is authenticated with its path.
func (d *Decrypter) Decrypt(ctx context.Context, name string, document []byte, format string) ([]byte, error) {
	if !d.read {
		d.read = true
		d.keys, d.failed = d.Keys(ctx)
	}
	if d.failed != nil {
		return nil, d.failed
	}
	result, err := Job.Do(ctx, d.Process, "decrypting "+name, Request{document, format, d.keys})
	if err != nil {
		return nil, err
	}
	if !result.NoKey {
		return result.Clear, nil
	}
	for _, failure := range result.Failures {
		if d.Warn != nil {
			d.Warn(name, failure)
		}
	}
	return nil, ErrNoKey
}

// NewProcess returns the process of a pool that decrypts documents.
func NewProcess(pool *helper.Pool) *helper.Process {
	return helper.Shared(pool, string(Job), func() *helper.Process {
		return pool.Process("sops", func(context.Context) ([]string, error) { return environment(pool.Environ()), nil }, string(Job))
	})
}

// environment returns the environment of the helper process: the environment of the user, in which
// the clients of key services find credentials. Documents specify the keys and may be untrusted,
// so the metadata service of a machine is used for credentials only if a variable of the user
// enables it.
func environment(environ []string) []string {
	env := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	set := func(name, value string) {
		if env[name] == "" && value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	set("AWS_EC2_METADATA_DISABLED", "true")
	set("AZURE_TOKEN_CREDENTIALS", azureCredentials(env))
	return environ
}

// azureCredentials returns the type of the Azure credentials in the environment, or "" if there are
// none.
func azureCredentials(env map[string]string) string {
	switch {
	case env["AZURE_TENANT_ID"] != "" && env["AZURE_CLIENT_ID"] != "" && env["AZURE_CLIENT_SECRET"]+env["AZURE_CLIENT_CERTIFICATE_PATH"]+env["AZURE_USERNAME"] != "":
		return "EnvironmentCredential"
	case env["AZURE_FEDERATED_TOKEN_FILE"] != "":
		return "WorkloadIdentityCredential"
	case env["IDENTITY_ENDPOINT"]+env["MSI_ENDPOINT"] != "":
		return "ManagedIdentityCredential"
	}
	return ""
}
