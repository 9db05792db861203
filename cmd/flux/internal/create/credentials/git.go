// Package credentials has the credential flags of the create commands and builds
// Secrets from them.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

// Git holds the credential flags of a Git repository, which create source git and
// create secret git share.
type Git struct {
	Username, KeyFile string
	Password          *input.SecretFlag
	key               sshkey.Kind
	TLS               TLS
}

// NewGit returns the credential flags of a Git repository; caFlag is the name of
// the flag with the CA certificates.
func NewGit(caFlag string) *Git {
	return &Git{
		Password: input.NewSecretFlag("password"), TLS: TLS{Ca: caFlag},
		key: sshkey.Kind{Algorithm: "ecdsa", Curve: "p384", Bits: 2048},
	}
}

// Add registers the flags.
func (g *Git) Add(fs *pflag.FlagSet) {
	fs.StringVarP(&g.Username, "username", "u", "", "user name for HTTPS")
	g.Password.Add(fs, "p", "password or token for HTTPS, or passphrase of the SSH key", "")
	fs.StringVar(&g.KeyFile, "private-key-file", "", "path to the SSH private key, '-' for standard input (default: a generated key)")
	g.TLS.Add(fs)
	fs.Var(command.Choice{Value: &g.key.Algorithm, Allowed: sshkey.Algorithms}, "ssh-key-algorithm", "algorithm of the generated SSH key: "+strings.Join(sshkey.Algorithms, ", "))
	fs.Var(command.Choice{Value: &g.key.Curve, Allowed: sshkey.Curves}, "ssh-ecdsa-curve", "curve of an ECDSA key: "+strings.Join(sshkey.Curves, ", "))
	fs.Var((*command.KeyBits)(&g.key.Bits), "ssh-rsa-bits", "size of an RSA key in bits, a multiple of 8")
}

// FlagNames returns the names of the flags that provide the data of the Secret.
func (g *Git) FlagNames() []string {
	return append(g.Password.FlagNames(), "username", "private-key-file", g.TLS.Ca)
}

// Check records flags that do not match the scheme of the URL.
func (g *Git) Check(c *creation.Creation, u *url.URL) {
	switch {
	case u == nil:
	case u.Scheme == "ssh":
		if given := c.Given(g.TLS.Ca); len(given) > 0 {
			c.Check(fmt.Errorf("%s requires an https:// URL", given[0]))
		}
		if c.SecretGiven(g.Password) && g.KeyFile == "" {
			c.Check(errors.New("--password requires --private-key-file with an ssh:// URL"))
		}
	default:
		if given := c.Given("private-key-file"); len(given) > 0 {
			c.Check(fmt.Errorf("%s requires an ssh:// URL", given[0]))
		}
		if (g.Username != "") != c.SecretGiven(g.Password) {
			c.Check(errors.New("--username and --password must be set together"))
		}
		if u.Scheme == "http" && len(c.Given(g.TLS.Ca)) > 0 {
			c.Check(fmt.Errorf("--%s requires an https:// URL", g.TLS.Ca))
		}
	}
}

// SSHData reads or generates the key pair, scans the host key of the server and returns the Secret
// data. pair, if set, replaces a generated key.
func (g *Git) SSHData(ctx context.Context, c *creation.Creation, u *url.URL, pair sshkey.Pair) (map[string]string, error) {
	passphrase := c.Secret(g.Password)
	key := c.File("private-key-file", g.KeyFile)
	if err := c.Err(); err != nil {
		return nil, err
	}
	var err error
	switch {
	case g.KeyFile != "":
		pair, err = sshkey.Load(key, passphrase)
		if errors.Is(err, sshkey.ErrPassphrase) {
			err = hint.Errorf("set the passphrase with --password-file or --password-stdin", "--private-key-file: %w", err)
		}
	case pair.Private == nil:
		pair, err = sshkey.Generate(g.key)
	}
	if err != nil {
		return nil, err
	}
	known, err := scanHost(ctx, c.App, u)
	if err != nil {
		return nil, err
	}
	data := map[string]string{"identity": string(pair.Private), "identity.pub": string(pair.Public), "known_hosts": known}
	if passphrase != "" {
		data["password"] = passphrase
	}
	return data, nil
}

// scanHost requests the host key of an SSH server and reports its fingerprint. It
// returns an error if the key contradicts the user's known_hosts file.
func scanHost(ctx context.Context, a *app.App, u *url.URL) (string, error) {
	key, err := sshkey.Scan(ctx, sshkey.Address(u.Host), nil)
	if err != nil {
		return "", hint.Errorf("check the host and port in --url, and that its SSH server is running", "scanning the host key of %s: %w", u.Host, err)
	}
	if home := config.Home(a.Env); home != "" {
		file := filepath.Join(home, ".ssh", "known_hosts")
		verdict, err := sshkey.CheckFile(file, key)
		if err != nil {
			return "", err
		}
		if verdict == sshkey.Mismatch {
			return "", hint.Errorf("if the host key was rotated, update that file",
				"host key mismatch: %s presented %s, which is not in %s: possible man-in-the-middle attack", u.Host, key.Fingerprint(), file)
		}
	}
	a.UI.Success("host key of %s: %s %s", u.Host, key.Type(), key.Fingerprint())
	return key.Line() + "\n", nil
}

// HTTPData returns the data of a Secret for a Git repository over HTTP.
func (g *Git) HTTPData(c *creation.Creation, bearer *input.SecretFlag) map[string]string {
	data := g.TLS.Read(c)
	if g.Username != "" {
		data["username"], data["password"] = g.Username, c.Secret(g.Password)
	}
	if c.SecretGiven(bearer) {
		data["bearerToken"] = c.Secret(bearer)
	}
	return data
}
