// Package bootstrap has the commands below bootstrap.
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

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/gitsign"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
)

// flags are the flags of bootstrap on every host.
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

// signFlags are how commits are signed.
type signFlags struct {
	ring, id, passphrase string
	sshFile, sshPassword string
	sshPassphrase        string
	reuse                bool
}

// NewCommand returns the command bootstrap.
func NewCommand(a *app.App) *cobra.Command {
	o := &flags{Manifests: installation.NewManifests(), key: sshkey.Kind{Algorithm: "ecdsa", Curve: "p384", Bits: 2048}}
	cmd := command.Group("bootstrap", "Bootstrap Flux on a cluster from a Git repository", newGit(a, o))
	for _, row := range hostRows() {
		cmd.AddCommand(newHosted(a, o, row))
	}
	cmd.Long = `Commit the manifests of Flux to a Git repository, install them on the cluster,
and let the cluster follow the repository from then on. Run it again to
upgrade, to finish what was interrupted, or to change a flag.

What would fail is found before anything is changed; --preflight stops there,
and --dry-run shows what would be created or changed. Where a branch takes no
pushes, --pull-request asks for the change to be merged: run the same command
again after the merge, and it goes on with the cluster.`
	o.add(cmd.PersistentFlags())
	return cmd
}

func (o *flags) add(fs *pflag.FlagSet) {
	o.Manifests.Add(fs)
	fs.StringVar(&o.branch, "branch", "main", "the branch to commit to and to follow")
	fs.BoolVar(&o.tokenAuth, "token-auth", false, "let the cluster use the password or token over HTTP, instead of a key over SSH")
	fs.StringVar(&o.caFile, "ca-file", "", "a file with certificates to trust besides the system's")
	fs.StringVar(&o.secretName, "secret-name", app.DefaultNamespace, "the name of the Secret that opens the repository to the cluster")
	fs.BoolVar(&o.recurseSubmodules, "recurse-submodules", false, "fetch the repository's submodules too")
	fs.StringSliceVar(&o.sparseCheckout, "sparse-checkout", nil, "fetch these folders of the repository only")
	fs.StringVar(&o.author, "author-name", "Flux", "the author of the commits")
	fs.StringVar(&o.email, "author-email", "", "the author's address")
	fs.StringVar(&o.appendix, "commit-message-appendix", "", "a text to end commit messages with, such as '[ci skip]'")
	fs.StringVar(&o.privateKeyFile, "private-key-file", "", "the SSH key that opens the repository, here and for the cluster")
	fs.StringVar(&o.sshHostname, "ssh-hostname", "", "the host, and port, of the repository's SSH address where it is not that of --url")
	fs.Var(command.Choice{Value: &o.key.Algorithm, Allowed: sshkey.Algorithms}, "ssh-key-algorithm", "the kind of SSH key to make: "+strings.Join(sshkey.Algorithms, ", "))
	fs.Var(command.Choice{Value: &o.key.Curve, Allowed: sshkey.Curves}, "ssh-ecdsa-curve", "the curve of an ecdsa key: "+strings.Join(sshkey.Curves, ", "))
	fs.Var((*command.KeyBits)(&o.key.Bits), "ssh-rsa-bits", "the size of an rsa key, a multiple of 8")
	fs.StringSliceVar(&o.hostKeyAlgos, "ssh-hostkey-algos", nil, "the types of host keys to ask SSH servers for, in order of preference")
	fs.StringVar(&o.knownHostsFile, "ssh-known-hosts-file", "", "a known_hosts file: only SSH servers with a key in it are trusted")
	o.sign.add(fs)
	o.mode.add(fs)
}

func (s *signFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&s.ring, "gpg-key-ring", "", "a file with the OpenPGP key to sign commits with")
	fs.StringVar(&s.id, "gpg-key-id", "", "the ID of the OpenPGP key, where there is more than one")
	fs.StringVar(&s.passphrase, "gpg-passphrase", "", "what unlocks the OpenPGP key")
	fs.StringVar(&s.sshFile, "ssh-signing-key-file", "", "a file with the SSH key to sign commits with")
	fs.StringVar(&s.sshPassword, "ssh-signing-password", "", "what unlocks the SSH key that signs")
	fs.StringVar(&s.sshPassphrase, "ssh-signing-passphrase", "", "another name of --ssh-signing-password")
	fs.BoolVar(&s.reuse, "ssh-signing-reuse-private-key", false, "sign commits with --private-key-file")
	_ = fs.MarkHidden("ssh-signing-passphrase")
}

// repositoryPath is the value of a flag that is a folder within the repository.
type repositoryPath string

func (p *repositoryPath) String() string { return string(*p) }

// Type is what help shows in place of the value.
func (p *repositoryPath) Type() string { return "safeRelativePath" }

// Set refuses a path that is outside the repository.
func (p *repositoryPath) Set(s string) error {
	clean, err := bootstrap.CleanPath(s)
	*p = repositoryPath(clean)
	return err
}

// plan returns what the flags ask for, apart from the host's own.
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

// signer returns what signs commits, nil where nothing is to.
func (s *signFlags) signer(privateKey []byte, password string) (gitsign.Signer, error) {
	ways := 0
	for _, asked := range []bool{s.ring != "", s.sshFile != "", s.reuse} {
		if asked {
			ways++
		}
	}
	switch {
	case ways == 0 && (s.id != "" || s.passphrase != ""):
		return nil, errors.New("--gpg-key-id and --gpg-passphrase need --gpg-key-ring")
	case ways == 0 && s.sshPassword+s.sshPassphrase != "":
		return nil, errors.New("--ssh-signing-password needs --ssh-signing-key-file")
	case ways == 0:
		return nil, nil //nolint:nilnil // commits are not signed
	case ways > 1:
		return nil, errors.New("give one of --gpg-key-ring, --ssh-signing-key-file and --ssh-signing-reuse-private-key: a commit has one signature")
	case s.ring != "":
		ring, err := os.ReadFile(s.ring)
		if err != nil {
			return nil, fmt.Errorf("reading --gpg-key-ring: %w", err)
		}
		return gitsign.OpenPGP(ring, s.id, s.passphrase)
	case s.reuse && privateKey == nil:
		return nil, errors.New("--ssh-signing-reuse-private-key needs --private-key-file")
	case s.sshFile != "":
		var err error
		if privateKey, err = os.ReadFile(s.sshFile); err != nil {
			return nil, fmt.Errorf("reading --ssh-signing-key-file: %w", err)
		}
		password = s.sshPassword + s.sshPassphrase
	}
	key, err := sshkey.Signer(privateKey, password)
	if err != nil {
		return nil, fmt.Errorf("using the SSH key that signs commits: %w", err)
	}
	return gitsign.SSH(key), nil
}

// confirmKey shows a public key and, unless silent, asks whether it has been
// given access.
func confirmKey(a *app.App, silent bool) func(context.Context, githost.DeployKey) error {
	return func(ctx context.Context, key githost.DeployKey) error {
		a.UI.Success("public key: %s", key.Public)
		if silent {
			return nil
		}
		yes, err := a.Confirm(ctx, "Please give the key access to your repository. Has it been done?")
		if err == nil && !yes {
			return clierr.WithHint("give it access and run the command again: the same key is used then", "%w", githost.ErrDeclined)
		}
		return err
	}
}

// progress shows the steps, with --verbose their times too.
type progress struct {
	terminal
	app          *app.App
	busy, waited time.Duration
}

// terminal is the part of ui.Terminal that is shown as it comes.
type terminal interface {
	Action(format string, args ...any)
	Waiting(format string, args ...any)
	Success(format string, args ...any)
	Warning(format string, args ...any)
}

// stillWaiting is how often a step that waits and says nothing is mentioned.
const stillWaiting = 15 * time.Second

// Step implements bootstrap.Progress.
func (p *progress) Step(name string, waits bool) func() {
	start := p.app.Now()
	quiet := p.app.UI.Progress(p.app.Now, "%s", name).Done
	if waits && !p.app.UI.Redraws() {
		quiet = p.mention(strings.TrimPrefix(name, "wait "), start)
	}
	return func() {
		quiet()
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

// mention tells from time to time how long a step has been waiting, until the
// function that it returns is called.
func (p *progress) mention(what string, start time.Time) func() {
	ticker := time.NewTicker(stillWaiting)
	over := make(chan struct{})
	var mentioning sync.WaitGroup
	mentioning.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				p.Waiting("still waiting %s (%s)", what, p.app.Now().Sub(start).Round(time.Second))
			}
		}
	})
	return func() {
		ticker.Stop()
		close(over)
		mentioning.Wait()
	}
}

// readFile reads a file that a flag names, nil where it names none.
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
