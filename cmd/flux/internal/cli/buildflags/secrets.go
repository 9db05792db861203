package buildflags

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
)

// Secrets holds the flags that replace Secrets in a sandbox.
type Secrets struct {
	// FakeSecrets generates values, AgeKeyFile is the file with the age keys for SOPS.
	FakeSecrets bool
	AgeKeyFile  string
	// Untrusted is set if the author of the files is untrusted, so that no keys are used.
	Untrusted bool
}

// AddFakeSecrets adds the flag --fake-secrets.
func (s *Secrets) AddFakeSecrets(fs *pflag.FlagSet) {
	fs.BoolVar(&s.FakeSecrets, "fake-secrets", false, "create missing Secrets and ConfigMaps with generated values, and replace SOPS-encrypted values")
}

// AddAgeKey adds the flag --age-key-file.
func (s *Secrets) AddAgeKey(fs *pflag.FlagSet) {
	fs.StringVar(&s.AgeKeyFile, "age-key-file", "", "file with the age keys for SOPS (default: SOPS_AGE_KEY_FILE)")
}

// maxKeys is the maximum size of a key file.
const maxKeys = 1 << 20

// AgeKey returns the age keys of the user, "" without any.
func (s *Secrets) AgeKey(a *app.App) (string, error) {
	if s.Untrusted {
		a.UI.Warning("encrypted documents are not decrypted: %s", build.ErrUntrusted)
		return "", nil
	}
	name := s.AgeKeyFile
	if name == "" {
		name = a.Env("SOPS_AGE_KEY_FILE")
	}
	if name == "" {
		return a.Env("SOPS_AGE_KEY"), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading the age keys: %w", err)
	}
	defer func() { _ = file.Close() }() // read-only
	text, err := budget.ReadAll(file, name, "the file", maxKeys)
	if err == nil && !strings.Contains(string(text), "AGE-SECRET-KEY-") {
		err = hint.Errorf("use the file that age-keygen created", "%s contains no age keys", name)
	}
	return string(text), err
}
