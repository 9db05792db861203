package bootstrap

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/sshkey"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/bootstrap/githost"
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
		Short: "Put Flux on a cluster out of any Git repository",
		Long: `Commit the manifests of Flux to a Git repository, install them on the cluster,
and let the cluster follow the repository from then on. Nothing is changed
before the repository could be read and the cluster has been found able to run
Flux, and nothing on the cluster before the repository has taken the commits.`,
		Example: `  # Over SSH, with the keys of the SSH agent here and a new key for the cluster
  flux bootstrap git --url=ssh://git@example.com/org/fleet --path=clusters/production

  # Over SSH, with one key here and for the cluster
  flux bootstrap git --url=ssh://git@example.com/org/fleet --private-key-file=./id_ed25519 --path=clusters/production --silent

  # Over HTTPS, with a password or token that the cluster uses too
  GIT_PASSWORD=… flux bootstrap git --url=https://example.com/org/fleet --username=me --token-auth --path=clusters/production

  # What would be created or changed, and nothing else
  GIT_PASSWORD=… flux bootstrap git --url=https://example.com/org/fleet --username=me --token-auth --path=clusters/production --dry-run

  # The same with the token from standard input, and a certificate authority of your own
  flux bootstrap git --url=https://git.example.com/org/fleet --token-auth --with-bearer-token --password=- --ca-file=./ca.crt < token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGit(a, cmd, o) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.url, "url", "", "the address of the repository")
	fs.Var(&o.path, "path", "the folder of this cluster in the repository; the root unless given")
	fs.DurationVar(&o.interval, "interval", time.Minute, "how often the cluster looks for new commits")
	fs.StringVarP(&o.username, "username", "u", "git", "the user name, over HTTP and SSH")
	fs.StringVarP(&o.password, "password", "p", "", "the password or token, or the passphrase of the SSH key; '-' reads it from standard input, GIT_PASSWORD keeps it off the command line")
	fs.BoolVar(&o.bearer, "with-bearer-token", false, "send the password as a bearer token")
	fs.BoolVar(&o.allowHTTP, "allow-insecure-http", false, "allow http addresses, which show credentials to everybody on the way")
	fs.BoolVarP(&o.silent, "silent", "s", false, "do not ask whether the public key has been given access")
	return cmd
}

func runGit(a *app.App, cmd *cobra.Command, o *gitFlags) error {
	address, err := githost.ParseURL(o.url, o.allowHTTP)
	var wrong *githost.URLError
	if errors.As(err, &wrong) {
		return &clierr.HintedError{Err: err, Hint: wrong.Hint}
	}
	if err != nil {
		return err
	}
	if o.password == "-" && o.RegistryCreds == "-" {
		return errors.New("--password and --registry-creds cannot both be read from standard input")
	}
	o.warnIdle(a, cmd, address.Scheme)
	ca, err := o.certificates()
	if err != nil {
		return err
	}
	privateKey, err := readFile("private-key-file", o.privateKeyFile)
	if err != nil {
		return err
	}
	password, err := gitPassword(cmd.Context(), a, o, privateKey)
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
	return run(cmd.Context(), a, plan, o.mode)
}

// warnIdle names the flags that have no effect beside the others, since a user
// who gave one expects it to do something.
func (o *gitFlags) warnIdle(a *app.App, cmd *cobra.Command, scheme string) {
	ssh := scheme == "ssh"
	warnIdle(a, cmd, []idleFlags{
		{o.tokenAuth, "with --token-auth the cluster uses no SSH key", []string{"ssh-hostname", "ssh-key-algorithm", "ssh-ecdsa-curve", "ssh-rsa-bits"}},
		{o.tokenAuth && !ssh, "nothing is opened over SSH", []string{"ssh-hostkey-algos", "ssh-known-hosts-file"}},
		{o.tokenAuth, "with --token-auth the cluster uses your password or token, which is yours to replace", []string{"rotate-key"}},
		{!o.tokenAuth && o.privateKeyFile != "", "the cluster gets the key of --private-key-file", []string{"rotate-key"}},
		{o.tokenAuth && !ssh && !o.sign.reuse, "nothing is opened over SSH", []string{"private-key-file"}},
		{!o.tokenAuth && ssh, "nothing is opened over HTTP", []string{"with-bearer-token", "ca-file", "allow-insecure-http"}},
		{!o.tokenAuth && o.privateKeyFile != "", "no key is made with --private-key-file", []string{"ssh-key-algorithm", "ssh-ecdsa-curve", "ssh-rsa-bits"}},
		{!o.tokenAuth && o.key.Algorithm != "rsa", "the generated key is not an RSA key", []string{"ssh-rsa-bits"}},
		{!o.tokenAuth && o.key.Algorithm != "ecdsa", "the key to make is no ECDSA key", []string{"ssh-ecdsa-curve"}},
		{scheme == "http", "the address is not https", []string{"ca-file"}},
	})
}

// idleFlags are flags that have no effect in some circumstances.
type idleFlags struct {
	when  bool
	why   string
	flags []string
}

// warnIdle names each flag that was given and has no effect, once.
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

// plainGit puts the row of the plain Git host together.
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
			return fmt.Errorf("asking whether the cluster's new key has been given access: %w", ui.ErrNoTerminal)
		},
	}
}

// gitPassword returns the password, token or passphrase: from the flag,
// standard input, the environment, or the terminal where one is needed.
func gitPassword(ctx context.Context, a *app.App, o *gitFlags, privateKey []byte) (string, error) {
	password := o.password
	if password == "-" {
		text, err := io.ReadAll(io.LimitReader(a.Stdin(ctx), installation.MostCredentials))
		if err != nil {
			return "", fmt.Errorf("reading the password from standard input: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	} else if password == "" {
		password = a.Env("GIT_PASSWORD")
	}
	question := ""
	if privateKey != nil && !o.tokenAuth {
		if sshkey.Encrypted(privateKey) && password == "" {
			question = "Passphrase of the SSH key"
		}
	} else if o.tokenAuth && password == "" {
		question = "Password or token of the Git repository"
	}
	if question == "" {
		return password, nil
	}
	answer, err := ask(ctx, a, question)
	if errors.Is(err, ui.ErrNoTerminal) {
		return "", clierr.WithHint("give it with GIT_PASSWORD, or from standard input with --password=-", "asking for the %s: %w", strings.ToLower(question[:1])+question[1:], err)
	}
	return answer, err
}

// ask reads a secret from the terminal.
func ask(ctx context.Context, a *app.App, question string) (string, error) {
	if !a.UI.Interactive() {
		return "", ui.ErrNoTerminal
	}
	answer, err := a.UI.Secret(ctx, question)
	if err == nil && answer == "" {
		err = errors.New("nothing was entered")
	}
	return answer, err
}

// certificates reads --ca-file and refuses one without a certificate, which
// would otherwise be found out as an untrusted server.
func (o *flags) certificates() ([]byte, error) {
	ca, err := readFile("ca-file", o.caFile)
	if err != nil || ca == nil {
		return nil, err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("reading --ca-file: no certificate in PEM format in %s", o.caFile)
	}
	return ca, nil
}
