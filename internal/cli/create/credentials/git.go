// Package credentials has the flags for credentials of create commands, and the
// Secrets made from them.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/cli/validate"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/sshkey"
)

// Git are how a Git repository is opened. create source git and
// create secret git share them.
type Git struct {
	Username, KeyFile string
	Password          *validate.SecretFlag
	key               sshkey.Kind
	TLS               TLS
}

// NewGit returns the flags for the credentials of a Git repository.
func NewGit(caFlag string) *Git {
	return &Git{
		Password: validate.NewSecretFlag("password"), TLS: TLS{Ca: caFlag},
		key: sshkey.Kind{Algorithm: "ecdsa", Curve: "p384", Bits: 2048},
	}
}

// Add adds the flags.
func (g *Git) Add(fs *pflag.FlagSet) {
	fs.StringVarP(&g.Username, "username", "u", "", "the user name over HTTPS")
	g.Password.Add(fs, "p", "the password or token over HTTPS, or the passphrase of the SSH key", "")
	fs.StringVar(&g.KeyFile, "private-key-file", "", "a file with the SSH key to use; one is made unless given; '-' is standard input")
	g.TLS.Add(fs)
	fs.Var(command.Choice{Value: &g.key.Algorithm, Allowed: sshkey.Algorithms}, "ssh-key-algorithm", "the kind of SSH key to make: "+strings.Join(sshkey.Algorithms, ", "))
	fs.Var(command.Choice{Value: &g.key.Curve, Allowed: sshkey.Curves}, "ssh-ecdsa-curve", "the curve of an ecdsa key: "+strings.Join(sshkey.Curves, ", "))
	fs.Var((*command.KeyBits)(&g.key.Bits), "ssh-rsa-bits", "the size of an rsa key, a multiple of 8")
}

// Names are the flags that a Secret is made from.
func (g *Git) Names() []string {
	return append(g.Password.Names(), "username", "private-key-file", g.TLS.Ca)
}

// Check refuses what does not go with the scheme of the address.
func (g *Git) Check(c *creation.Creation, u *url.URL) {
	switch {
	case u == nil:
	case u.Scheme == "ssh":
		if given := c.Given(g.TLS.Ca); len(given) > 0 {
			c.Check(fmt.Errorf("%s is for https addresses, not for SSH", given[0]))
		}
		if c.Asked(g.Password) && g.KeyFile == "" {
			c.Check(errors.New("--password unlocks --private-key-file over SSH, which is not given"))
		}
	default:
		if given := c.Given("private-key-file"); len(given) > 0 {
			c.Check(fmt.Errorf("%s is for ssh addresses", given[0]))
		}
		if (g.Username != "") != c.Asked(g.Password) {
			c.Check(errors.New("--username and --password go together"))
		}
		if u.Scheme == "http" && len(c.Given(g.TLS.Ca)) > 0 {
			c.Check(fmt.Errorf("--%s is for https addresses", g.TLS.Ca))
		}
	}
}

// SSHData makes or reads the key, asks the server for its own, and returns what
// a Secret needs to hold. pair is a key that is used already, if any.
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
			err = clierr.WithHint("give the passphrase with --password-file or --password-stdin", "--private-key-file: %w", err)
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

// scanHost asks an SSH server for its key, shows the fingerprint, and refuses a
// key that contradicts what the user's known_hosts says.
func scanHost(ctx context.Context, a *app.App, u *url.URL) (string, error) {
	key, err := sshkey.Scan(ctx, sshkey.Address(u.Host), nil)
	if err != nil {
		return "", fmt.Errorf("asking %s for its host key: %w", u.Host, err)
	}
	if home := config.Home(a.Env); home != "" {
		file := filepath.Join(home, ".ssh", "known_hosts")
		verdict, err := sshkey.CheckFile(file, key)
		if err != nil {
			return "", err
		}
		if verdict == sshkey.Mismatch {
			return "", clierr.WithHint("if its key was changed on purpose, correct that file",
				"%s shows the host key %s, which is not the one in %s: the connection may be intercepted", u.Host, key.Fingerprint(), file)
		}
	}
	a.UI.Success("host key of %s: %s %s", u.Host, key.Type(), key.Fingerprint())
	return key.Line() + "\n", nil
}

// HTTPData is what opens a Git repository over HTTP.
func (g *Git) HTTPData(c *creation.Creation, bearer *validate.SecretFlag) map[string]string {
	data := g.TLS.Read(c)
	if g.Username != "" {
		data["username"], data["password"] = g.Username, c.Secret(g.Password)
	}
	if c.Asked(bearer) {
		data["bearerToken"] = c.Secret(bearer)
	}
	return data
}
