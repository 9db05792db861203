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

// DecrypterFor decrypts with the age keys that are at hand (of the person, and
// of the cluster where they may be read) and, failing these, with the sops on
// PATH. What nobody can decrypt stays encrypted.
func DecrypterFor(a *app.App, secrets build.Lookup, named ...build.Reference) build.Decrypter {
	d := &sops.Decrypter{Identities: func(ctx context.Context) ([]age.Identity, error) { return ageKeys(ctx, a, secrets, named) }}
	if program, err := exec.LookPath("sops"); err == nil {
		d.Program = func(ctx context.Context, document []byte, format string) ([]byte, error) {
			return runSOPS(ctx, program, document, format)
		}
	}
	return keyed{d}
}

// keyed speaks of missing keys as builds do.
type keyed struct{ with *sops.Decrypter }

func (k keyed) Decrypt(ctx context.Context, document []byte, format string) ([]byte, error) {
	clear, err := k.with.Decrypt(ctx, document, format)
	if errors.Is(err, sops.ErrNoKey) {
		return nil, build.ErrNoKey
	}
	return clear, err
}

// decrypters decrypt for each Kustomization with the keys of its own Secret, or,
// as the controller does, with those that are meant for all.
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

// ageKeys are those that SOPS would use, and those of the Secrets that are named.
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
		// Who may not read the cluster's key has to do without it.
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

// runSOPS lets the sops program decrypt. What it says of a failure may be about
// any of many services, and is no reason to fail: the object stays encrypted.
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
