package credentials

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

// Password returns the password, token or passphrase from the flag, standard input or the environment. If one
// is required, it prompts on the terminal. With tokenAuth, the cluster also uses this value.
func Password(ctx context.Context, a *app.App, password string, tokenAuth bool, privateKey []byte) (string, error) {
	if password == "-" {
		text, err := budget.ReadAll(a.Stdin(ctx), "", "it", installflags.MostCredentials)
		if err != nil {
			return "", fmt.Errorf("reading the password from standard input: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	} else if password == "" {
		password = a.Env("GIT_PASSWORD")
	}
	question := ""
	if privateKey != nil && !tokenAuth {
		if sshkey.Encrypted(privateKey) && password == "" {
			question = "Passphrase of the SSH key"
		}
	} else if tokenAuth && password == "" {
		question = "Password or token of the Git repository"
	}
	if question == "" {
		return password, nil
	}
	answer, err := ask(ctx, a, question)
	if errors.Is(err, ui.ErrNoTerminal) {
		return "", hint.Errorf("set GIT_PASSWORD, or use --password=- to read it from standard input", "prompting for the %s: %w", strings.ToLower(question[:1])+question[1:], err)
	}
	return answer, err
}

// KeyPassphrase returns the passphrase of --private-key-file, or "" if the key is
// not encrypted.
func KeyPassphrase(ctx context.Context, a *app.App, privateKey []byte) (string, error) {
	if privateKey == nil || !sshkey.Encrypted(privateKey) {
		return "", nil
	}
	if passphrase := a.Env("GIT_PASSWORD"); passphrase != "" {
		return passphrase, nil
	}
	answer, err := ask(ctx, a, "Passphrase of the SSH key")
	if errors.Is(err, ui.ErrNoTerminal) {
		return "", hint.Errorf("set GIT_PASSWORD", "prompting for the passphrase of the SSH key: %w", err)
	}
	return answer, err
}

// ask prompts for a secret on the terminal.
func ask(ctx context.Context, a *app.App, question string) (string, error) {
	if !a.UI.Interactive() {
		return "", ui.ErrNoTerminal
	}
	answer, err := a.UI.Secret(ctx, question)
	if err == nil && answer == "" {
		err = errors.New("empty input")
	}
	a.Secrets.Add(answer)
	return answer, err
}

// Certificates reads --ca-file and returns an error if it has no certificate, which
// would otherwise surface as an untrusted server.
func Certificates(file string) ([]byte, error) {
	ca, err := File("ca-file", file)
	if err != nil || ca == nil {
		return nil, err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("reading --ca-file: %s contains no PEM certificate", file)
	}
	return ca, nil
}

// File reads the file of a flag and returns nil if the flag is not set.
func File(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading --%s: %w", flag, err)
	}
	return slices.Clip(data), nil
}
