package secret

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/credentials"
	"github.com/fluxkit/flux/internal/secrets/credential"
)

// sopsKeys are the private keys of one flag.
type sopsKeys struct {
	flag, suffix string
	files        []string
	// public returns the public keys or fingerprints of valid private keys. noun is the name of the
	// keys.
	public func([]byte) ([]string, error)
	noun   string
}

func secretSOPS() builder {
	age := sopsKeys{flag: "age-key-file", suffix: ".agekey", public: credential.AgeKeys, noun: "age public key"}
	pgp := sopsKeys{flag: "pgp-key-file", suffix: ".asc", public: credential.OpenPGPKeys, noun: "OpenPGP fingerprint"}
	vault := input.NewSecretFlag("vault-token")
	return builder{
		word: "sops", what: "with keys that decrypt SOPS files",
		example: `  # Decrypt the files of a Kustomization with an age key
  flux create secret sops sops-age --age-key-file=./age.agekey
  flux create kustomization app --source=GitRepository/app --path=./app --prune --decryption-provider=sops --decryption-secret=sops-age

  # Read an OpenPGP private key from standard input
  gpg --export-secret-keys --armor flux@example.com | flux create secret sops sops-gpg --pgp-key-file=-`,
		others: func(fs *pflag.FlagSet) {
			fs.StringSliceVar(&age.files, age.flag, nil, "paths to files with age private keys, '-' for standard input")
			fs.StringSliceVar(&pgp.files, pgp.flag, nil, "paths to armored OpenPGP private keys without a passphrase, '-' for standard input")
			vault.Add(fs, "", "token of HashiCorp Vault", "")
		},
		build: func(_ context.Context, c *creation.Creation) (*unstructured.Unstructured, error) {
			data := map[string]string{}
			if len(age.files)+len(pgp.files) == 0 && !c.SecretGiven(vault) {
				c.Check(errors.New("--age-key-file, --pgp-key-file or --vault-token is required"))
			}
			public := append(age.read(c, data), pgp.read(c, data)...)
			if c.SecretGiven(vault) {
				data["sops.vault-token"] = c.Secret(vault)
			}
			if len(c.Problems) == 0 {
				for _, line := range public {
					c.App.UI.Success("%s", line)
				}
			}
			return credentials.NewSecret(c, c.Name, "Opaque", data), nil
		},
	}
}

// read adds the keys to the Secret data, under names with the suffix by which
// kustomize-controller recognizes them. It returns a line for each public key, for encrypting
// files.
func (k sopsKeys) read(c *creation.Creation, data map[string]string) []string {
	var lines []string
	for _, file := range k.files {
		name := filepath.Base(file)
		if file == "-" {
			name = "identity"
		}
		name = strings.TrimSuffix(name, k.suffix) + k.suffix
		if problems := validation.IsConfigMapKey(name); len(problems) > 0 {
			c.CheckFlag(k.flag, fmt.Errorf("%q is not a valid key of a Secret: rename the file", name))
			continue
		}
		if _, twice := data[name]; twice {
			c.CheckFlag(k.flag, fmt.Errorf("two files are named %q: file names must be unique", name))
			continue
		}
		before := len(c.Problems)
		text := c.File(k.flag, file)
		if len(c.Problems) > before {
			continue
		}
		public, err := k.public(text)
		c.CheckFlag(k.flag, err)
		for _, key := range public {
			lines = append(lines, k.noun+": "+key)
		}
		data[name] = string(text)
	}
	return lines
}
