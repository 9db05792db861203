package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/desired"
	"github.com/fluxkit/flux/internal/sops"
	"github.com/fluxkit/flux/pkg/build"
)

// DecrypterFor decrypts with the available age keys (those of the user, and
// those in readable Secrets) and otherwise with the sops program in PATH.
// Documents without a key remain encrypted.
func DecrypterFor(a *app.App, secrets build.Lookup, named ...build.Reference) build.Decrypter {
	d := &sops.Decrypter{Identities: func(ctx context.Context) ([]age.Identity, error) { return ageKeys(ctx, a, secrets, named) }}
	if program, err := exec.LookPath("sops"); err == nil {
		d.Program = func(ctx context.Context, document []byte, format string) ([]byte, error) {
			return runSOPS(ctx, program, document, format)
		}
	}
	return keyed{d}
}

// keyed converts missing-key errors to those of builds.
type keyed struct{ with *sops.Decrypter }

func (k keyed) Decrypt(ctx context.Context, document []byte, format string) ([]byte, error) {
	clear, err := k.with.Decrypt(ctx, document, format)
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

// ageKeys returns the age keys of the SOPS environment and of the named
// Secrets.
func ageKeys(ctx context.Context, a *app.App, secrets build.Lookup, named []build.Reference) ([]age.Identity, error) {
	texts := []string{a.Env("SOPS_AGE_KEY")}
	file, asked := a.Env("SOPS_AGE_KEY_FILE"), true
	if file == "" {
		config := a.Env("XDG_CONFIG_HOME")
		if config == "" {
			config = filepath.Join(a.Env("HOME"), ".config")
		}
		file, asked = filepath.Join(config, "sops", "age", "keys.txt"), false
	}
	content, err := os.ReadFile(file)
	if err != nil && (asked || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("reading age keys: %w", err)
	}
	texts = append(texts, string(content))
	for _, secret := range named {
		// The keys of the cluster are optional: users often have no permission
		// to read them.
		data, err := secrets.Data(ctx, secret)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		for key, value := range data {
			if strings.HasSuffix(key, ".agekey") {
				texts = append(texts, string(value))
			}
		}
	}
	var all []age.Identity
	for _, text := range texts {
		identities, err := sops.Identities(text)
		if err != nil {
			return nil, err
		}
		all = append(all, identities...)
	}
	return all, nil
}

// runSOPS decrypts with the sops program. A failure is ignored, because it may
// come from any key service: the object remains encrypted.
func runSOPS(ctx context.Context, program string, document []byte, format string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, "--decrypt", "--ignore-mac", "--input-type", format, "--output-type", format, "/dev/stdin")
	cmd.Stdin = bytes.NewReader(document)
	clear, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, sops.ErrNoKey
	}
	return clear, nil
}
