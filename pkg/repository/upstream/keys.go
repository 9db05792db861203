package upstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Decryption decrypts SOPS documents.
type Decryption struct {
	// Pool contains the helper that runs the decryption.
	Pool *helper.Pool
	// Env returns the variables of the user's environment, which may specify age keys.
	Env func(string) string
	// Warn reports a document that cannot be decrypted.
	Warn func(format string, args ...any)
}

// Decrypter decrypts with the keys in readable Secrets and with the user's keys and credentials.
// Documents without an available key remain encrypted.
func (d *Decryption) Decrypter(secrets build.Lookup, named ...controllers.ID) build.Decrypter {
	return keyed{&sops.Decrypter{
		Process: sops.NewProcess(d.Pool),
		Keys:    func(ctx context.Context) (sops.Keys, error) { return d.keys(ctx, secrets, named) },
		Warn:    func(document, failure string) { d.Warn("cannot decrypt %s with %s", document, failure) },
	}}
}

// keyed converts missing-key errors to build errors.
type keyed struct{ with *sops.Decrypter }

func (k keyed) Decrypt(ctx context.Context, name string, document []byte, format string) ([]byte, error) {
	clear, err := k.with.Decrypt(ctx, name, document, format)
	if errors.Is(err, sops.ErrNoKey) {
		return nil, build.ErrNoKey
	}
	return clear, err
}

// keys returns the age keys of the user, and the keys in the named
// Secrets.
func (d *Decryption) keys(ctx context.Context, secrets build.Lookup, named []controllers.ID) (sops.Keys, error) {
	own, err := d.ownAgeKeys()
	if err != nil {
		return sops.Keys{}, err
	}
	keys := sops.Keys{Age: own}
	for _, secret := range named {
		// The cluster's keys are optional, because users often have no permission to read them.
		data, err := secrets.Data(ctx, secret)
		if err != nil && ctx.Err() != nil {
			return sops.Keys{}, err
		}
		addKeys(&keys, data)
	}
	return keys, nil
}

// addKeys adds the keys of a Secret, whose entries are named as kustomize-controller expects.
func addKeys(keys *sops.Keys, data map[string][]byte) {
	for _, name := range slices.Sorted(maps.Keys(data)) {
		value := data[name]
		switch {
		case strings.HasSuffix(name, ".agekey"):
			keys.Age = append(keys.Age, string(value))
		case strings.HasSuffix(name, ".asc"):
			keys.PGP = append(keys.PGP, string(value))
		case name == "sops.vault-token":
			keys.Vault = strings.TrimSpace(string(value))
		case name == "sops.aws-kms":
			keys.AWS = value
		case name == "sops.azure-kv":
			keys.Azure = value
		case name == "sops.gcp-kms":
			keys.GCP = value
		}
	}
}

// ownAgeKeys returns the contents of SOPS_AGE_KEY and of the age key file.
func (d *Decryption) ownAgeKeys() ([]string, error) {
	file, named := d.Env("SOPS_AGE_KEY_FILE"), true
	if file == "" {
		config := userConfig(runtime.GOOS, d.Env)
		if !filepath.IsAbs(config) { // a repository must not provide the keys
			return []string{d.Env("SOPS_AGE_KEY")}, nil
		}
		file, named = filepath.Join(config, "sops", "age", "keys.txt"), false
	}
	content, err := os.ReadFile(file)
	if err != nil && (named || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("reading age keys: %w", err)
	}
	return []string{d.Env("SOPS_AGE_KEY"), string(content)}, nil
}

// userConfig returns the user's configuration directory on an operating system, in which sops searches
// for age keys, or "" if the environment does not define one.
func userConfig(system string, env func(string) string) string {
	home, xdg := env("HOME"), env("XDG_CONFIG_HOME")
	switch {
	case system == "windows":
		return env("AppData")
	case xdg != "" || home == "":
		return xdg
	case system == "darwin":
		return filepath.Join(home, "Library", "Application Support")
	}
	return filepath.Join(home, ".config")
}
