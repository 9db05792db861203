// Package bootstrap implements flux bootstrap: it installs Flux on a cluster from a
// Git repository that then manages it. pkg/bootstrap has the engine.
package bootstrap

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/bootstrap/credentials"
	"github.com/fluxkit/flux/cmd/flux/internal/bootstrap/mode"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/installflags"
	"github.com/fluxkit/flux/internal/config"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/pkg/bootstrap"
)

// flags holds the common flags of the bootstrap commands.
type flags struct {
	*installflags.Manifests
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

	sign credentials.Signing
	mode mode.Flags
}

// NewCommand returns the bootstrap command.
func NewCommand(a *app.App) *cobra.Command {
	o := &flags{Manifests: installflags.NewManifests(), key: sshkey.Kind{Algorithm: "ecdsa", Curve: "p384", Bits: 2048}}
	cmd := command.Group("bootstrap", "Bootstrap Flux on a cluster from a Git repository", newGit(a, o))
	for _, row := range hostRows() {
		cmd.AddCommand(newHosted(a, o, row))
	}
	cmd.Long = `Commit the Flux manifests to a Git repository, install them on the cluster and
configure the cluster to sync from the repository. Run the command again to
upgrade Flux, to resume an interrupted bootstrap or to change flags.

Changes:
  The preflight checks run before anything is changed; --preflight runs only
  them. --dry-run prints the changes. If the branch does not accept pushes,
  --pull-request opens a pull request: run the same command again after the
  merge to install Flux on the cluster.`
	cmd.Example = `  # Bootstrap a cluster from any Git repository over SSH
  flux bootstrap git --url=ssh://git@example.com/org/fleet --path=clusters/production

  # Check whether bootstrap from a repository on GitHub would succeed
  GITHUB_TOKEN=… flux bootstrap github --owner=acme --repository=fleet --path=clusters/production --preflight`
	cmd.Annotations = command.Exits{
		clierr.ExitSuccess: "Flux is bootstrapped, the changes of --dry-run are printed, the checks of --preflight succeeded, or the pull request of " +
			"--pull-request is open",
		clierr.ExitFailed: "failure, or a check of --preflight failed",
	}.Annotations()
	o.add(cmd.PersistentFlags())
	return cmd
}

func (o *flags) add(fs *pflag.FlagSet) {
	o.Manifests.Add(fs)
	fs.StringVar(&o.branch, "branch", "main", "Git branch to commit to and to sync from")
	fs.BoolVar(&o.tokenAuth, "token-auth", false, "authenticate the cluster with the password or token over HTTPS instead of an SSH deploy key")
	fs.StringVar(&o.caFile, "ca-file", "", "path to CA certificates to trust in addition to the system certificates")
	fs.StringVar(&o.secretName, "secret-name", app.DefaultNamespace, "name of the Secret with the Git credentials")
	fs.BoolVar(&o.recurseSubmodules, "recurse-submodules", false, "fetch the submodules of the repository recursively")
	fs.StringSliceVar(&o.sparseCheckout, "sparse-checkout", nil, "directories of the repository to check out (default: all)")
	fs.StringVar(&o.author, "author-name", "Flux", "name of the commit author")
	fs.StringVar(&o.email, "author-email", "", "e-mail address of the commit author")
	fs.StringVar(&o.appendix, "commit-message-appendix", "", "text appended to commit messages, e.g. '[ci skip]'")
	fs.StringVar(&o.privateKeyFile, "private-key-file", "", "path to the SSH private key for this command and the cluster")
	fs.StringVar(&o.sshHostname, "ssh-hostname", "", "SSH host and optional port of the repository (default: the host of the repository URL)")
	fs.Var(command.Choice{Value: &o.key.Algorithm, Allowed: sshkey.Algorithms}, "ssh-key-algorithm", "algorithm of the generated SSH key: "+strings.Join(sshkey.Algorithms, ", "))
	fs.Var(command.Choice{Value: &o.key.Curve, Allowed: sshkey.Curves}, "ssh-ecdsa-curve", "curve of a generated ECDSA key: "+strings.Join(sshkey.Curves, ", "))
	fs.Var((*command.KeyBits)(&o.key.Bits), "ssh-rsa-bits", "size of a generated RSA key in bits, a multiple of 8")
	fs.StringSliceVar(&o.hostKeyAlgos, "ssh-hostkey-algos", nil, "accepted SSH host key algorithms, in order of preference")
	fs.StringVar(&o.knownHostsFile, "ssh-known-hosts-file", "", "path to the known_hosts file with the trusted SSH host keys")
	o.sign.Add(fs)
	o.mode.Add(fs)
}

// repositoryPath is a flag value with the path to a directory in the repository.
type repositoryPath string

func (p *repositoryPath) String() string { return string(*p) }

// Type returns the name of the type in help texts.
func (p *repositoryPath) Type() string { return "safeRelativePath" }

// Set returns an error for a path outside the repository.
func (p *repositoryPath) Set(s string) error {
	clean, err := bootstrap.CleanPath(s)
	*p = repositoryPath(clean)
	return err
}

// plan returns the bootstrap plan of the common flags.
func (o *flags) plan(a *app.App, cmd *cobra.Command, privateKey []byte, password string) (bootstrap.Plan, error) {
	if err := o.mode.Validate(); err != nil {
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
	signer, err := o.sign.Signer(privateKey, password)
	if err != nil {
		return bootstrap.Plan{}, err
	}
	key := bootstrap.Key{
		Private: privateKey, Algorithm: o.key.Algorithm, Bits: o.key.Bits, Curve: o.key.Curve, HostKeyAlgorithms: o.hostKeyAlgos,
		HostKeysFile: o.knownHostsFile, Trust: func(ctx context.Context, key bootstrap.ServerKey) error { return trustHost(ctx, a, key) },
	}
	if o.knownHostsFile != "" {
		if _, err := credentials.File("ssh-known-hosts-file", o.knownHostsFile); err != nil {
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
			return hint.Errorf("grant the key access and run the command again: it uses the same key", "%w", githost.ErrDeclined)
		}
		return err
	}
}

// trustHost asks the user to confirm an unverified SSH host key.
func trustHost(ctx context.Context, a *app.App, key bootstrap.ServerKey) error {
	a.UI.Warning("unverified host key of %s: %s %s", key.Address, key.Type, key.Fingerprint)
	yes, err := a.Confirm(ctx, "Do you trust this host key?")
	if err == nil && !yes {
		return hint.Errorf("get the host key from the server administrator and pin it with --ssh-known-hosts-file", "the host key of %s is not trusted", key.Address)
	}
	return err
}
