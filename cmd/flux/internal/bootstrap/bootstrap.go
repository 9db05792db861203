// Package bootstrap implements flux bootstrap: it installs Flux on a cluster from a
// Git repository that then manages it. pkg/bootstrap has the engine.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/git/signature"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap"
)

// flags holds the common flags of the bootstrap commands.
type flags struct {
	*installation.Manifests
	branch     string
	tokenAuth  bool
	caFile     string
	secretName string

	recurseSubmodules bool
	sparseCheckout    []string

	author, email, appendix string

	privateKeyFile string
	knownHostsFile string
	sshHostname    string
	key            sshkey.Kind
	hostKeyAlgos   []string

	sign signFlags
	mode mode
}

// signFlags holds the flags for commit signing.
type signFlags struct {
	ring, id, passphrase string
	sshFile, sshPassword string
	sshPassphrase        string
	reuse                bool
}

// NewCommand returns the bootstrap command.
func NewCommand(a *app.App) *cobra.Command {
	o := &flags{Manifests: installation.NewManifests(), key: sshkey.Kind{Algorithm: "ecdsa", Curve: "p384", Bits: 2048}}
	cmd := command.Group("bootstrap", "Bootstrap Flux on a cluster from a Git repository", newGit(a, o))
	for _, row := range hostRows() {
		cmd.AddCommand(newHosted(a, o, row))
	}
	cmd.Long = `Commit the Flux manifests to a Git repository, install them on the cluster and
configure the cluster to sync from the repository. Run it again to upgrade Flux, to
resume an interrupted bootstrap or to change flags.

The preflight checks run before anything is changed; --preflight runs only the
checks, and --dry-run prints the changes. If the branch does not accept pushes,
--pull-request opens a pull request: run the same command again after the merge
to install Flux on the cluster.`
	cmd.Annotations = command.Exits{
		clierr.ExitSuccess: "Flux is bootstrapped; with --preflight bootstrap would succeed, with --dry-run also if it would change something, and with " +
			"--pull-request the pull request is open",
		clierr.ExitFailed: "failure, or with --preflight bootstrap would fail",
	}.Annotations()
	o.add(cmd.PersistentFlags())
	return cmd
}

func (o *flags) add(fs *pflag.FlagSet) {
	o.Manifests.Add(fs)
	fs.StringVar(&o.branch, "branch", "main", "Git branch to commit to and to sync from")
	fs.BoolVar(&o.tokenAuth, "token-auth", false, "authenticate the cluster with the password or token over HTTPS instead of an SSH deploy key")
	fs.StringVar(&o.caFile, "ca-file", "", "path to CA certificates to trust in addition to those of the system")
	fs.StringVar(&o.secretName, "secret-name", app.DefaultNamespace, "name of the Secret with the Git credentials")
	fs.BoolVar(&o.recurseSubmodules, "recurse-submodules", false, "fetch the submodules of the repository recursively")
	fs.StringSliceVar(&o.sparseCheckout, "sparse-checkout", nil, "directories of the repository to check out (default all)")
	fs.StringVar(&o.author, "author-name", "Flux", "name of the commit author")
	fs.StringVar(&o.email, "author-email", "", "e-mail address of the commit author")
	fs.StringVar(&o.appendix, "commit-message-appendix", "", "text appended to commit messages, e.g. '[ci skip]'")
	fs.StringVar(&o.privateKeyFile, "private-key-file", "", "path to the SSH private key for the repository, used here and by the cluster")
	fs.StringVar(&o.sshHostname, "ssh-hostname", "", "SSH host and optional port of the repository (default the host of the repository URL)")
	fs.Var(command.Choice{Value: &o.key.Algorithm, Allowed: sshkey.Algorithms}, "ssh-key-algorithm", "algorithm of the generated SSH key: "+strings.Join(sshkey.Algorithms, ", "))
	fs.Var(command.Choice{Value: &o.key.Curve, Allowed: sshkey.Curves}, "ssh-ecdsa-curve", "curve of a generated ECDSA key: "+strings.Join(sshkey.Curves, ", "))
	fs.Var((*command.KeyBits)(&o.key.Bits), "ssh-rsa-bits", "size of a generated RSA key in bits, a multiple of 8")
	fs.StringSliceVar(&o.hostKeyAlgos, "ssh-hostkey-algos", nil, "accepted SSH host key algorithms, in order of preference")
	fs.StringVar(&o.knownHostsFile, "ssh-known-hosts-file", "", "path to a known_hosts file with the only trusted SSH host keys")
	o.sign.add(fs)
	o.mode.add(fs)
}

func (s *signFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&s.ring, "gpg-key-ring", "", "path to the OpenPGP key ring for commit signing")
	fs.StringVar(&s.id, "gpg-key-id", "", "ID of the OpenPGP key, if the key ring has several")
	fs.StringVar(&s.passphrase, "gpg-passphrase", "", "passphrase of the OpenPGP key")
	fs.StringVar(&s.sshFile, "ssh-signing-key-file", "", "path to the SSH private key for commit signing")
	fs.StringVar(&s.sshPassword, "ssh-signing-password", "", "passphrase of the SSH signing key")
	fs.StringVar(&s.sshPassphrase, "ssh-signing-passphrase", "", "alias of --ssh-signing-password")
	fs.BoolVar(&s.reuse, "ssh-signing-reuse-private-key", false, "sign commits with --private-key-file")
	_ = fs.MarkHidden("ssh-signing-passphrase")
}

// repositoryPath is a flag value with the path to a directory in the repository.
type repositoryPath string

func (p *repositoryPath) String() string { return string(*p) }

// Type returns the name of the type in help texts.
func (p *repositoryPath) Type() string { return "safeRelativePath" }

// Set returns an error for a path outside of the repository.
func (p *repositoryPath) Set(s string) error {
	clean, err := bootstrap.CleanPath(s)
	*p = repositoryPath(clean)
	return err
}

// plan returns the bootstrap plan of the common flags.
func (o *flags) plan(a *app.App, cmd *cobra.Command, privateKey []byte, password string) (bootstrap.Plan, error) {
	if err := o.mode.validate(); err != nil {
		return bootstrap.Plan{}, err
	}
	set, err := o.Set(a, cmd)
	if err != nil {
		return bootstrap.Plan{}, err
	}
	pull, err := o.PullSecret(a.Stdin(cmd.Context()), set.Namespace)
	if err != nil {
		return bootstrap.Plan{}, err
	}
	signer, err := o.sign.signer(privateKey, password)
	if err != nil {
		return bootstrap.Plan{}, err
	}
	key := bootstrap.Key{
		Private: privateKey, Algorithm: o.key.Algorithm, Bits: o.key.Bits, Curve: o.key.Curve, HostKeyAlgorithms: o.hostKeyAlgos,
		HostKeysFile: o.knownHostsFile, Trust: func(ctx context.Context, key bootstrap.ServerKey) error { return trustHost(ctx, a, key) },
	}
	if o.knownHostsFile != "" {
		if _, err := readFile("ssh-known-hosts-file", o.knownHostsFile); err != nil {
			return bootstrap.Plan{}, err
		}
	}
	if home := config.Home(a.Env); home != "" {
		key.KnownHostsFile = filepath.Join(home, ".ssh", "known_hosts")
	}
	if privateKey != nil && sshkey.Encrypted(privateKey) {
		key.Passphrase = password
	}
	return bootstrap.Plan{
		Branch: o.branch, Components: set, PullSecret: pull, TokenAuth: o.tokenAuth, Force: o.Force, Now: a.Now, Key: key,
		Commit: bootstrap.Commit{AuthorName: o.author, AuthorEmail: o.email, Appendix: o.appendix, Sign: signer},
		Sync:   bootstrap.Sync{SecretName: o.secretName, RecurseSubmodules: o.recurseSubmodules, SparseCheckout: o.sparseCheckout},
	}, nil
}

// signer returns the commit signer, or nil if commits are not signed.
func (s *signFlags) signer(privateKey []byte, password string) (signature.Signer, error) {
	keys := 0
	for _, set := range []bool{s.ring != "", s.sshFile != "", s.reuse} {
		if set {
			keys++
		}
	}
	switch {
	case keys == 0 && (s.id != "" || s.passphrase != ""):
		return nil, errors.New("--gpg-key-id and --gpg-passphrase require --gpg-key-ring")
	case keys == 0 && s.sshPassword+s.sshPassphrase != "":
		return nil, errors.New("--ssh-signing-password requires --ssh-signing-key-file")
	case keys == 0:
		return nil, nil // commits are not signed
	case keys > 1:
		return nil, errors.New("--gpg-key-ring, --ssh-signing-key-file and --ssh-signing-reuse-private-key are mutually exclusive")
	case s.ring != "":
		ring, err := os.ReadFile(s.ring)
		if err != nil {
			return nil, fmt.Errorf("reading --gpg-key-ring: %w", err)
		}
		return signature.OpenPGP(ring, s.id, s.passphrase)
	case s.reuse && privateKey == nil:
		return nil, errors.New("--ssh-signing-reuse-private-key requires --private-key-file")
	case s.sshFile != "":
		var err error
		if privateKey, err = os.ReadFile(s.sshFile); err != nil {
			return nil, fmt.Errorf("reading --ssh-signing-key-file: %w", err)
		}
		password = s.sshPassword + s.sshPassphrase
	}
	key, err := sshkey.Signer(privateKey, password)
	if err != nil {
		return nil, fmt.Errorf("reading the SSH signing key: %w", err)
	}
	return signature.SSH(key), nil
}

// confirmKey returns a function that reports the public key and, unless silent, asks
// the user to confirm that the deploy key was added to the repository.
func confirmKey(a *app.App, silent bool) func(context.Context, githost.DeployKey) error {
	return func(ctx context.Context, key githost.DeployKey) error {
		a.UI.Success("public key: %s", key.Public)
		if silent {
			return nil
		}
		yes, err := a.Confirm(ctx, "Please give the key access to your repository. Has the key been granted access?")
		if err == nil && !yes {
			return hint.Errorf("grant it access and run the command again, which uses the same key", "%w", githost.ErrDeclined)
		}
		return err
	}
}

// progress reports the steps of bootstrap and, with --verbose, their duration.
type progress struct {
	terminal
	app          *app.App
	busy, waited time.Duration
}

// terminal is the subset of ui.Terminal that bootstrap.Progress requires.
type terminal interface {
	Action(format string, args ...any)
	Waiting(format string, args ...any)
	Success(format string, args ...any)
	Warning(format string, args ...any)
}

// reminderInterval is the time between progress messages of a waiting step.
const reminderInterval = 15 * time.Second

// Step implements bootstrap.Progress.
func (p *progress) Step(name string, waits bool) func() {
	start := p.app.Now()
	stop := p.app.UI.Progress(p.app.Now, "%s", name).Done
	if waits && !p.app.UI.Redraws() {
		stop = p.remind(strings.TrimPrefix(name, "wait "), start)
	}
	return func() {
		stop()
		took := p.app.Now().Sub(start)
		label := ""
		if waits {
			p.waited += took
			label = ", waiting"
		} else {
			p.busy += took
		}
		if p.app.Global.Verbose {
			p.app.UI.Line("  %s: %.2fs%s (so far %.2fs, and %.2fs waiting)", name, took.Seconds(), label, p.busy.Seconds(), p.waited.Seconds())
		}
	}
}

// remind reports periodically how long a step has been waiting, until the returned
// function is called.
func (p *progress) remind(what string, start time.Time) func() {
	ticker := time.NewTicker(reminderInterval)
	done := make(chan struct{})
	var reminder sync.WaitGroup
	reminder.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.Waiting("still waiting %s (%s)", what, p.app.Now().Sub(start).Round(time.Second))
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		reminder.Wait()
	}
}

// readFile reads the file of a flag and returns nil if the flag is not set.
func readFile(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading --%s: %w", flag, err)
	}
	return slices.Clip(data), nil
}
