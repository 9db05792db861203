package bootstrap

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/bootstrap/credentials"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/terminal/ui"
)

type gitFlags struct {
	*flags
	url       string
	path      repositoryPath
	interval  time.Duration
	username  string
	password  string
	bearer    bool
	allowHTTP bool
	silent    bool
}

func newGit(a *app.App, common *flags) *cobra.Command {
	o := &gitFlags{flags: common}
	cmd := &cobra.Command{
		Use:   "git",
		Short: "Bootstrap Flux on a cluster from a Git repository on any server",
		Long: `Commit the Flux manifests to a Git repository, install them on the cluster and
configure the cluster to sync from the repository. Nothing is changed if a
preflight check of the repository or the cluster fails, and the cluster is
changed only after the commits are pushed.`,
		Example: `  # Use SSH with the keys of the SSH agent and generate a deploy key for the cluster
  flux bootstrap git --url=ssh://git@example.com/org/fleet --path=clusters/production

  # Use SSH with one key for this command and the cluster
  flux bootstrap git --url=ssh://git@example.com/org/fleet --private-key-file=./id_ed25519 --path=clusters/production --yes

  # Use HTTPS with a password or token for this command and the cluster
  GIT_PASSWORD=… flux bootstrap git --url=https://example.com/org/fleet --username=me --token-auth --path=clusters/production

  # Print the changes without making them
  GIT_PASSWORD=… flux bootstrap git --url=https://example.com/org/fleet --username=me --token-auth --path=clusters/production --dry-run

  # Use a bearer token from standard input and a custom certificate authority
  flux bootstrap git --url=https://git.example.com/org/fleet --token-auth --with-bearer-token --password=- --ca-file=./ca.crt < token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGit(a, cmd, o) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.url, "url", "", "URL of the repository")
	fs.Var(&o.path, "path", "path to the directory of this cluster in the repository (default: the root)")
	fs.DurationVar(&o.interval, "interval", time.Minute, "sync interval of the cluster, e.g. 1m or 10m")
	fs.StringVarP(&o.username, "username", "u", "git", "user name for HTTPS and SSH")
	fs.StringVarP(&o.password, "password", "p", "", "password or token for HTTPS, or passphrase of the SSH key; '-' for standard input (default: $GIT_PASSWORD)")
	fs.BoolVar(&o.bearer, "with-bearer-token", false, "send the password as a bearer token")
	fs.BoolVar(&o.allowHTTP, "allow-insecure-http", false, "allow http:// URLs, which send credentials unencrypted")
	command.AddYes(fs, &o.silent, "skip the deploy key confirmation")
	return cmd
}

func runGit(a *app.App, cmd *cobra.Command, o *gitFlags) error {
	address, err := githost.ParseURL(o.url, o.allowHTTP)
	if err != nil {
		return err
	}
	if o.password == "-" && o.RegistryCreds == "-" {
		return errors.New("--password and --registry-creds cannot both be read from standard input")
	}
	o.warnIdle(a, cmd, address.Scheme)
	ca, err := credentials.Certificates(o.caFile)
	if err != nil {
		return err
	}
	privateKey, err := credentials.File("private-key-file", o.privateKeyFile)
	if err != nil {
		return err
	}
	password, err := credentials.Password(cmd.Context(), a, o.password, o.tokenAuth, privateKey)
	if err != nil {
		return err
	}
	plan, err := o.plan(a, cmd, privateKey, password)
	if err != nil {
		return err
	}
	plan.Path, plan.Sync.Interval = string(o.path), o.interval
	plan.Host = plainGit(a, cmd, o, address, githost.Access{
		Password: password, CABundle: ca, PrivateKey: privateKey, Passphrase: password, AgentSocket: a.Env("SSH_AUTH_SOCK"),
	})
	if o.silent {
		plan.Key.Trust = nil
	}
	return o.mode.Run(cmd.Context(), a, plan)
}

// warnIdle warns of flags that have no effect in combination with the others.
func (o *gitFlags) warnIdle(a *app.App, cmd *cobra.Command, scheme string) {
	ssh := scheme == "ssh"
	warnIdle(a, cmd, append(o.idleKeys(o.tokenAuth), []idleFlags{
		{o.tokenAuth, "with --token-auth the cluster uses no SSH key", []string{"ssh-hostname", "ssh-key-algorithm", "ssh-ecdsa-curve", "ssh-rsa-bits"}},
		{o.tokenAuth && !ssh, "SSH is not used", []string{"ssh-hostkey-algos", "ssh-known-hosts-file"}},
		{o.tokenAuth, "with --token-auth the cluster uses your password or token, which flux cannot rotate", []string{"rotate-key"}},
		{o.tokenAuth && !ssh && !o.sign.Reuse, "SSH is not used", []string{"private-key-file"}},
		{!o.tokenAuth && ssh, "HTTPS is not used", []string{"with-bearer-token", "ca-file", "allow-insecure-http"}},
		{scheme == "http", "the URL scheme is not https", []string{"ca-file"}},
	}...))
}

// idleKeys returns the SSH key flags that have no effect. With byToken, the cluster uses no SSH key.
func (o *flags) idleKeys(byToken bool) []idleFlags {
	given := !byToken && o.privateKeyFile != ""
	return []idleFlags{
		{given, "the cluster uses the key in --private-key-file", []string{"rotate-key"}},
		{given, "no key is generated with --private-key-file", []string{"ssh-key-algorithm", "ssh-ecdsa-curve", "ssh-rsa-bits"}},
		{!byToken && o.key.Algorithm != "rsa", "the generated key is not an RSA key", []string{"ssh-rsa-bits"}},
		{!byToken && o.key.Algorithm != "ecdsa", "the generated key is not an ECDSA key", []string{"ssh-ecdsa-curve"}},
	}
}

// idleFlags lists flags that have no effect under a condition.
type idleFlags struct {
	when  bool
	why   string
	flags []string
}

// warnIdle warns once of each flag that is set and has no effect.
func warnIdle(a *app.App, cmd *cobra.Command, table []idleFlags) {
	named := map[string]bool{}
	for _, idle := range table {
		for _, name := range idle.flags {
			if idle.when && cmd.Flags().Changed(name) && !named[name] {
				named[name] = true
				a.UI.Warning("--%s has no effect: %s", name, idle.why)
			}
		}
	}
}

// plainGit returns the Host for a Git server without an API.
func plainGit(a *app.App, cmd *cobra.Command, o *gitFlags, address *url.URL, access githost.Access) githost.Git {
	access.Username = o.username
	if named := address.User.Username(); named != "" && !cmd.Flags().Changed("username") {
		access.Username = named
	}
	if address.Scheme == "ssh" && cmd.Flags().Changed("username") {
		address.User = url.User(o.username)
	}
	if address.Scheme != "ssh" {
		address.User = nil
	}
	if o.bearer {
		access.BearerToken = access.Password
	}
	access.URL = address.String()
	return githost.Git{
		Access: access, TokenAuth: o.tokenAuth, SSHHostname: o.sshHostname, SSHUsername: o.username,
		Confirm: confirmKey(a, o.silent),
		CanConfirm: func() error {
			if o.silent || a.UI.Interactive() {
				return nil
			}
			return fmt.Errorf("confirming that the deploy key was added: %w", ui.ErrNoTerminal)
		},
	}
}
