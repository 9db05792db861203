package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/sops"
	"github.com/fluxkit/flux/pkg/build"
)

// DecrypterFor decrypts with the keys in readable Secrets, and with the keys and
// credentials of the user. Documents without a key remain encrypted.
func DecrypterFor(a *app.App, secrets build.Lookup, named ...build.Reference) build.Decrypter {
	return keyed{&sops.Decrypter{
		Process: a.Decryption(),
		Keys:    func(ctx context.Context) (sops.Keys, error) { return decryptionKeys(ctx, a, secrets, named) },
		Warn:    func(document, failure string) { a.UI.Warning("cannot decrypt %s with %s", document, failure) },
	}}
}

// keyed converts missing-key errors to those of builds.
type keyed struct{ with *sops.Decrypter }

func (k keyed) Decrypt(ctx context.Context, name string, document []byte, format string) ([]byte, error) {
	clear, err := k.with.Decrypt(ctx, name, document, format)
	if errors.Is(err, sops.ErrNoKey) {
		return nil, build.ErrNoKey
	}
	return clear, err
}

// decrypters returns, for each Kustomization, a decrypter with the keys of its
// Secret or the default keys of the controller.
func decrypters(a *app.App, settings Settings) func(*unstructured.Unstructured, build.Lookup) build.Decrypter {
	return func(ks *unstructured.Unstructured, lookup build.Lookup) build.Decrypter {
		var named []build.Reference
		if name := desired.Text(ks, "spec", "decryption", "secretRef", "name"); name != "" {
			named = append(named, build.Reference{Kind: "Secret", Namespace: ks.GetNamespace(), Name: name})
		}
		if settings.ageSecret != "" {
			named = append(named, build.Reference{Kind: "Secret", Namespace: a.FluxNamespace(), Name: settings.ageSecret})
		}
		return DecrypterFor(a, lookup, named...)
	}
}

// decryptionKeys returns the age keys of the user, and the keys in the named
// Secrets.
func decryptionKeys(ctx context.Context, a *app.App, secrets build.Lookup, named []build.Reference) (sops.Keys, error) {
	own, err := ownAgeKeys(a)
	if err != nil {
		return sops.Keys{}, err
	}
	keys := sops.Keys{Age: own}
	for _, secret := range named {
		// The keys of the cluster are optional: users often have no permission
		// to read them.
		data, err := secrets.Data(ctx, secret)
		if err != nil && ctx.Err() != nil {
			return sops.Keys{}, err
		}
		addKeys(&keys, data)
	}
	return keys, nil
}

// addKeys adds the contents of a Secret, which are named as kustomize-controller
// reads them.
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

// ownAgeKeys returns the contents of SOPS_AGE_KEY and of the file with age keys.
func ownAgeKeys(a *app.App) ([]string, error) {
	file, named := a.Env("SOPS_AGE_KEY_FILE"), true
	if file == "" {
		config := a.Env("XDG_CONFIG_HOME")
		if config == "" {
			config = filepath.Join(a.Env("HOME"), ".config")
		}
		file, named = filepath.Join(config, "sops", "age", "keys.txt"), false
	}
	content, err := os.ReadFile(file)
	if err != nil && (named || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("reading age keys: %w", err)
	}
	return []string{a.Env("SOPS_AGE_KEY"), string(content)}, nil
}
